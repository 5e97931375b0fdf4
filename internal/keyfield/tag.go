package keyfield

import (
	"fmt"
	"strings"
)

// Tag is a parsed `keygen:"name"` struct tag.
type Tag struct {
	Name  string // generator's name; "" is the default generator
	Never bool   // `keygen:"-"`: not to be filled, whatever else applies
}

// ParseTag parses the text of a keygen tag. An option it does not know is an
// error: ignoring one would fill keys in another way than the model asks for.
func ParseTag(text string) (Tag, error) {
	name, options, found := strings.Cut(text, ",")
	name = strings.TrimSpace(name)
	if found {
		return Tag{}, fmt.Errorf("keygen tag %q: unknown option %q; the tag is `keygen:\"name\"` or `keygen:\"-\"`", text, options)
	}
	if name == "-" {
		return Tag{Never: true}, nil
	}
	return Tag{Name: name}, nil
}
