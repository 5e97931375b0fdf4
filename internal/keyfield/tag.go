// SPDX-License-Identifier: Apache-2.0

package keyfield

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/shardid/shardid/keygen"
)

// Tag says how a field is filled.
type Tag struct {
	Name     string // the generator's name; "" means the default generator
	Never    bool   // `keygen:"-"`: the field is never filled
	Hooks    bool   // assign before the model's own hooks run
	Encoding string // the digits of a text key: Dec, Base36, Base62 or Crockford; "" if the tag names none
	Pad      int    // the least length of a text key, reached with leading zeros; 0 means none
}

// The encodings that a tag may name.
const (
	Dec       = "dec"
	Base36    = "base36"
	Base62    = "base62"
	Crockford = "crockford"
)

var encodings = map[string]*keygen.Encoding{
	Dec:       keygen.Decimal,
	Base36:    keygen.Base36,
	Base62:    keygen.Base62,
	Crockford: keygen.Crockford,
}

const textOptions = "dec, base36, base62, crockford and pad=N"

// maxPad is far above the 19 digits of the largest id.
const maxPad = 64

const grammar = "the tag is `keygen:\"name\"`, `keygen:\"name,option,…\"` with the options hooks, " + textOptions + ", or `keygen:\"-\"`"

// Text reports whether the tag asks for a text form of an integer id.
func (t Tag) Text() bool { return t.Encoding != "" || t.Pad > 0 }

// ParseTag parses the text of a keygen tag. An unknown option is an error, because ignoring it
// would fill keys otherwise than the model demands.
func ParseTag(text string) (Tag, error) {
	name, options, _ := strings.Cut(text, ",")
	t := Tag{Name: strings.TrimSpace(name)}
	if t.Name == "-" {
		t = Tag{Never: true}
	}
	if options == "" {
		return t, nil
	}
	for option := range strings.SplitSeq(options, ",") {
		if err := t.set(strings.TrimSpace(option)); err != nil {
			return Tag{}, fmt.Errorf("keygen tag %q: %w; %s", text, err, grammar)
		}
	}
	return t, nil
}

func (t *Tag) set(option string) error {
	name, value, valued := strings.Cut(option, "=")
	switch {
	case t.Never:
		return fmt.Errorf("option %q of a field that is never filled", option)
	case name == "pad" && valued && t.Pad == 0:
		return t.setPad(value)
	case !valued && encodings[name] != nil && t.Encoding == "":
		t.Encoding = name
	case !valued && name == "hooks" && !t.Hooks:
		t.Hooks = true
	case isOption(option):
		return fmt.Errorf("option %q occurs twice, or with another option of its kind", option)
	default:
		return fmt.Errorf("unknown option %q", option)
	}
	return nil
}

func (t *Tag) setPad(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxPad {
		return fmt.Errorf("pad=%s: must be a length from 1 to %d", value, maxPad)
	}
	t.Pad = n
	return nil
}

func isOption(option string) bool {
	return encodings[option] != nil || option == "hooks" || strings.HasPrefix(option, "pad=")
}

// ReadTag reads the tags of a struct field: `keygen:"order"`, or `gorm:"primaryKey;keygen:order"`,
// or `db:"id,keygen=order"`. found is false if none of them contains a keygen setting. Two
// different settings are an error.
func ReadTag(tag reflect.StructTag) (t Tag, found bool, err error) {
	for _, place := range []struct {
		where string
		text  func(reflect.StructTag) (string, bool)
	}{{"keygen", func(tag reflect.StructTag) (string, bool) { return tag.Lookup("keygen") }}, {"gorm", ofGorm}, {"db", ofDB}} {
		text, here := place.text(tag)
		if !here {
			continue
		}
		parsed, err := ParseTag(text)
		if err != nil {
			return Tag{}, false, err
		}
		if found && parsed != t {
			return Tag{}, false, fmt.Errorf("the %s tag has keygen %q, but another tag of the field has another value; keep one", place.where, text)
		}
		t, found = parsed, true
	}
	return t, found, nil
}

// ofGorm reads the setting keygen of a gorm tag, whose settings are separated by semicolons and
// whose names are case-insensitive. A backslash escapes a semicolon.
func ofGorm(tag reflect.StructTag) (string, bool) {
	escaped := false
	for setting := range strings.SplitSeq(tag.Get("gorm"), ";") {
		name, value, _ := strings.Cut(setting, ":")
		if !escaped && strings.EqualFold(strings.TrimSpace(name), "keygen") {
			return value, true
		}
		escaped = strings.HasSuffix(setting, `\`)
	}
	return "", false
}

// ofDB reads the option keygen of a db tag, and the further options that belong to keygen: the db
// tag separates all of them by commas.
func ofDB(tag reflect.StructTag) (string, bool) {
	_, options, _ := strings.Cut(tag.Get("db"), ",")
	text, found := "", false
	var rest []string
	for option := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case strings.TrimSpace(name) == "keygen":
			text, found = value, true
		case isOption(strings.TrimSpace(option)):
			rest = append(rest, option)
		}
	}
	return strings.Join(append([]string{text}, rest...), ","), found
}
