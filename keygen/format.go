package keygen

import (
	"errors"
	"fmt"
	"strings"
)

// FormatConfig configures a [Format].
type FormatConfig struct {
	// Prefix stands before the digits and Suffix after them: "ord_" makes
	// ord_3oOoJkTjdb7, which is not taken for the id of a user. Each defaults
	// to none.
	Prefix, Suffix string

	// Encoding writes the digits. Defaults to [Decimal].
	Encoding *Encoding

	// Width is the number of digits, from 1 to what 63 bits need in the
	// encoding; shorter ones get zeros in front, so that texts sort like their
	// ids where the digits do. An id that needs more is refused: see
	// [Encoding.Width] for how many that takes. Defaults to 0, which means as
	// many as the id has.
	Width int

	// Scrambler hides the ids. Texts then sort by nothing. Defaults to nil,
	// which shows the ids as they are.
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
		return fmt.Errorf("keygen: FormatConfig.Width is %d; the most digits that an id has in %s are %d, and 0 means as many as it has", c.Width, c.Encoding.name, most)
	}
	if c.Width == 0 || c.Scrambler == nil {
		return nil
	}
	if least := c.Encoding.Width(c.Scrambler.bits); c.Width < least {
		return fmt.Errorf("keygen: FormatConfig.Width is %d, but scrambled ids of %d bits have up to %d digits in %s; raise it, or scramble fewer bits", c.Width, c.Scrambler.bits, least, c.Encoding.name)
	}
	return nil
}

// Format writes ids as texts for people, URLs and CHAR columns, and reads them
// back. It is immutable and safe for concurrent use. The zero Format writes the
// decimal digits alone.
//
// Each id has one text, and each text is read as one id or refused: Parse takes
// exactly what Text writes. A CHAR column whose collation ignores case would
// take two texts for one where the digits tell a from A, as Base58, Base62 and
// Base64 do; use ascii_bin or a BINARY column there.
type Format struct {
	cfg FormatConfig
}

// NewFormat returns a format, or an error that names the setting that is wrong.
func NewFormat(cfg FormatConfig) (*Format, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Format{cfg}, nil
}

// Text returns the text of id. An id below 1, or above what the Scrambler or the
// Width takes, is an error that wraps [ErrRange].
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

// Parse returns the id of a text that Text wrote. Anything else, above all
// another prefix, is an error that wraps [ErrSyntax].
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

// digits returns what stands between prefix and suffix, if it is as long as
// Text writes it.
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
		return "", fmt.Errorf("%w: %s has a zero in front of its digits", ErrSyntax, clip(text))
	}
	return digits, nil
}

// Generator returns a generator of the texts of g's ids, for models whose key
// is a text.
func (f *Format) Generator(g Generator[int64]) Generator[string] {
	return Map(g, f.Text)
}
