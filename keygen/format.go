// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"errors"
	"fmt"
	"strings"
)

// FormatConfig configures a [Format].
type FormatConfig struct {
	// Prefix is written before the digits and Suffix after them. A prefix "ord_" makes
	// ord_3oOoJkTjdb7, which nobody takes for the id of a user. Both default to "".
	Prefix, Suffix string

	// Encoding writes the digits. Defaults to [Decimal].
	Encoding *Encoding

	// Width is the number of digits, from 1 to the number that 63 bits need in the encoding.
	// Shorter ids get leading zeros, so that texts sort like their ids if the digits do. Text
	// refuses an id that needs more digits; see [Encoding.Width] for the number that a layout
	// needs. Defaults to 0: as many digits as the id has.
	Width int

	// Scrambler hides the ids. Texts then do not sort like the ids. Defaults to nil, which
	// shows the ids unchanged.
	Scrambler *Scrambler
}

func (c FormatConfig) withDefaults() FormatConfig {
	c.Encoding = c.Encoding.orDecimal()
	return c
}

func (c FormatConfig) validate() error {
	if c.Scrambler != nil && c.Scrambler.block == nil {
		return errors.New("keygen: FormatConfig.Scrambler has no key; make it with NewScrambler")
	}
	most := c.Encoding.Width(maxBits)
	if c.Width < 0 || c.Width > most {
		return fmt.Errorf("keygen: FormatConfig.Width is %d; an id has at most %[3]d digits in %[2]s, and 0 means as many as it has", c.Width, c.Encoding.name, most)
	}
	if c.Width == 0 || c.Scrambler == nil {
		return nil
	}
	if least := c.Encoding.Width(c.Scrambler.bits); c.Width < least {
		return fmt.Errorf("keygen: FormatConfig.Width is %d, but scrambled ids of %d bits have up to %d digits in %s; raise it, or scramble fewer bits", c.Width, c.Scrambler.bits, least, c.Encoding.name)
	}
	return nil
}

// Format writes ids as texts for people, URLs and CHAR columns, and reads them back. It is
// immutable and safe for concurrent use. The zero Format writes the decimal digits alone.
//
// Each id has exactly one text, and Parse reads exactly the texts that Text writes. Base58,
// Base62 and Base64 distinguish a from A: a CHAR column whose collation ignores case would
// treat two different texts as equal. Use ascii_bin or a BINARY column for them.
type Format struct {
	cfg FormatConfig
}

// NewFormat returns a format. Its error names the setting that is wrong.
func NewFormat(cfg FormatConfig) (*Format, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Format{cfg}, nil
}

// Text returns the text of id. For an id below 1, or above the limit of the Scrambler or the
// Width, the error wraps [ErrRange].
func (f *Format) Text(id int64) (string, error) {
	if id < 1 {
		return "", fmt.Errorf("%w: %d is below 1, where ids start", ErrRange, id)
	}
	if s := f.cfg.Scrambler; s != nil {
		var err error
		if id, err = s.Scramble(id); err != nil {
			return "", err
		}
	}
	digits := f.cfg.Encoding.Encode(id)
	missing := f.cfg.Width - len(digits)
	if f.cfg.Width > 0 && missing < 0 {
		return "", fmt.Errorf("%w: %d has %d digits in %s, more than the %d of FormatConfig.Width", ErrRange, id, len(digits), f.cfg.Encoding.name, f.cfg.Width)
	}
	return f.cfg.Prefix + f.cfg.Encoding.zeros(missing) + digits + f.cfg.Suffix, nil
}

// Parse returns the id of a text that Text wrote. For any other text, such as one with another
// prefix, the error wraps [ErrSyntax].
func (f *Format) Parse(text string) (int64, error) {
	digits, err := f.digits(text)
	if err != nil {
		return 0, err
	}
	id, err := f.cfg.Encoding.Decode(digits)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		return 0, fmt.Errorf("%w: %s stands for 0, which is no id", ErrSyntax, clip(text))
	}
	if f.cfg.Scrambler == nil {
		return id, nil
	}
	if id, err = f.cfg.Scrambler.Unscramble(id); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrSyntax, clip(text), err)
	}
	return id, nil
}

// digits returns the part between prefix and suffix, if it is as long as Text writes it.
func (f *Format) digits(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, f.cfg.Prefix)
	if !ok {
		return "", fmt.Errorf("%w: %s does not begin with %q", ErrSyntax, clip(text), f.cfg.Prefix)
	}
	digits, ok := strings.CutSuffix(rest, f.cfg.Suffix)
	switch {
	case !ok:
		return "", fmt.Errorf("%w: %s does not end with %q", ErrSyntax, clip(text), f.cfg.Suffix)
	case f.cfg.Width > 0 && len(digits) != f.cfg.Width:
		return "", fmt.Errorf("%w: %s has %d digits instead of %d", ErrSyntax, clip(text), len(digits), f.cfg.Width)
	case f.cfg.Width == 0 && strings.HasPrefix(digits, f.cfg.Encoding.zeros(1)):
		return "", fmt.Errorf("%w: %s has a leading zero", ErrSyntax, clip(text))
	}
	return digits, nil
}

// Generator returns a generator of texts of g's ids, for models whose key is a text.
func (f *Format) Generator(g Generator[int64]) Generator[string] {
	return Map(g, f.Text)
}
