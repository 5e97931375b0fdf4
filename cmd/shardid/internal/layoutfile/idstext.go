// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema/migrate"
)

// idsText is the layout file's text for how a migration changes ids: "affine(10, 3)".
type idsText string

var (
	idsForm    = regexp.MustCompile(`^\s*(\w+)\s*\(\s*([^()]*?)\s*\)\s*$`)
	plainName  = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	errIDsForm = errors.New("write it as kept, affine(10, 3), keyed(NAME_OF_A_VARIABLE) or map(tag)")
)

// ids parses the text; generators of map tables come from c.
func (t idsText) ids(c *Counters) (migrate.IDs, error) {
	if text := strings.TrimSpace(string(t)); text == "" || text == "kept" {
		return migrate.KeepIDs(), nil
	}
	form := idsForm.FindStringSubmatch(string(t))
	if form == nil {
		return migrate.IDs{}, fmt.Errorf("ids %q: %w", string(t), errIDsForm)
	}
	switch name, argument := form[1], form[2]; name {
	case "affine":
		n, err := parseNumbers(argument, ",")
		if err != nil || len(n) != 2 {
			return migrate.IDs{}, fmt.Errorf("ids %q: affine needs a factor and an offset, as in affine(10, 3)", string(t))
		}
		return migrate.Affine(n[0], n[1]), nil
	case "keyed":
		return keyedBy(argument)
	case "map":
		if argument == "" {
			return migrate.IDs{}, fmt.Errorf("ids %q: name the tag of leaf_alloc for the new ids, as in map(orders)", string(t))
		}
		return migrate.MapTable(c.tag(argument)), nil
	}
	return migrate.IDs{}, fmt.Errorf("ids %q: %w", string(t), errIDsForm)
}

// keyedBy reads the key from the environment. Errors do not show it.
func keyedBy(variable string) (migrate.IDs, error) {
	if !plainName.MatchString(variable) {
		return migrate.IDs{}, errors.New("ids: keyed needs the name of the environment variable with the key")
	}
	digits, err := hex.DecodeString(strings.TrimSpace(os.Getenv(variable)))
	if err != nil || len(digits) != 16 {
		return migrate.IDs{}, fmt.Errorf("ids: the environment variable %s holds no key; set it to 32 hexadecimal digits, from openssl rand -hex 16, and keep them", variable)
	}
	return migrate.Keyed([16]byte(digits)), nil
}

// Counters are the generators for the ids of map tables, by the tags of leaf_alloc.
type Counters struct {
	Source *sql.DB       // set before the first id is drawn
	turn   chan struct{} // holds one element while a goroutine uses open
	open   map[string]*segment.Generator
}

// NewCounters returns counters without open generators.
func NewCounters() *Counters {
	return &Counters{turn: make(chan struct{}, 1), open: map[string]*segment.Generator{}}
}

// Close closes the generators. Nobody may draw ids any more.
func (c *Counters) Close() error {
	var errs []error
	for _, g := range c.open {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

// tag returns a generator that is opened with its first id: most verbs need none, and
// before seed the tag does not exist.
func (c *Counters) tag(name string) keygen.Generator[int64] { return taggedIDs{c, name} }

func (c *Counters) generator(ctx context.Context, tag string) (*segment.Generator, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if g := c.open[tag]; g != nil {
		return g, nil
	}
	store, err := sqlstore.New(ctx, c.Source)
	if err != nil {
		return nil, err
	}
	g, err := segment.New(ctx, segment.Config{Source: store.Tag(tag)})
	if err != nil {
		return nil, err
	}
	c.open[tag] = g
	return g, nil
}

// taggedIDs is the generator of one tag.
type taggedIDs struct {
	*Counters

	name string
}

var (
	_ keygen.Generator[int64] = taggedIDs{}
	_ keygen.Filler[int64]    = taggedIDs{}
)

// Next draws one id.
func (t taggedIDs) Next(ctx context.Context) (int64, error) {
	g, err := t.generator(ctx, t.name)
	if err != nil {
		return 0, err
	}
	return g.Next(ctx)
}

// Fill draws several ids at once.
func (t taggedIDs) Fill(ctx context.Context, ids []int64) error {
	g, err := t.generator(ctx, t.name)
	if err != nil {
		return err
	}
	return g.Fill(ctx, ids)
}
