package plan

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// edit is a part of the text that is replaced.
type edit struct {
	from, to int
	with     string
}

// texts keeps the texts of a plan by target.
type texts struct {
	known atomic.Pointer[map[sharding.Target]string]
}

// text returns the text for a target, made once.
func (p *Plan) text(target sharding.Target) (string, error) {
	old := p.texts.known.Load()
	if old != nil {
		if text, ok := (*old)[target]; ok {
			return text, nil
		}
	}
	text, err := p.splice(target)
	if err != nil {
		return "", err
	}
	next := map[sharding.Target]string{target: text}
	if old != nil {
		maps.Copy(next, *old)
	}
	p.texts.known.CompareAndSwap(old, &next) // else somebody else keeps one: this one is made again
	return text, nil
}

// splice returns the text with the names of the target, and of those of the other
// tables of its group that have the same slots. Every other byte stays.
func (p *Plan) splice(target sharding.Target) (string, error) {
	edits, err := p.names(target)
	if err != nil {
		return "", err
	}
	return spliced(p.statement.Text, edits), nil
}

// names puts the names of the target's tables into the text.
func (p *Plan) names(target sharding.Target) (edits []edit, err error) {
	for _, r := range p.sharded {
		at, _, err := p.snapshot.Hinted(r.table.Name, sharding.Hint{On: target})
		if err != nil {
			return nil, err
		}
		edits = p.rename(edits, r, at.Table)
	}
	return edits, nil
}

// rename puts the name of a physical table in the place of a logical one, which
// stays as the alias by which columns are qualified. A table that bears the logical name
// has no need of that.
func (p *Plan) rename(edits []edit, r *reference, physical string) []edit {
	if r.label() == physical {
		return edits
	}
	name := r.at.Name.Span
	quoted := p.options.Quote(physical)
	edits = append(edits, edit{name.From, name.To, quoted})
	switch {
	case r.at.Alias.Name != "":
	case r.renamed:
		for _, c := range r.columns {
			edits = append(edits, edit{c.From, c.To, quoted})
		}
	default:
		end := max(name.To, r.at.Partition.To)
		edits = append(edits, edit{end, end, " AS " + name.Of(p.statement.Text)})
	}
	return edits
}

func spliced(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	last := 0
	for _, e := range edits {
		out.WriteString(text[last:e.from])
		out.WriteString(e.with)
		last = e.to
	}
	out.WriteString(text[last:])
	return out.String()
}

// last returns the last part of a name.
func last(n sqlparse.Name) string { return n.Parts[len(n.Parts)-1].Name }

// unqualified returns the name that an expression is without a qualifier, or "".
func unqualified(e sqlparse.Expr) string {
	if c, ok := bare(e).(*sqlparse.Column); ok && len(c.Name.Parts) == 1 {
		return c.Name.Parts[0].Name
	}
	return ""
}
