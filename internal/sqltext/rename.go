package sqltext

import (
	"errors"
	"strings"
)

// Errors of Rename.
var (
	errAmbiguous = errors.New("the text can be read in more than one way; leave backslashes and double quotes out of it")
	errUnclosed  = errors.New("a literal or a comment is not closed")
	errSchema    = errors.New("a table is named together with its database; leave the database out")
	errString    = errors.New("a table is named by a string; name it without quotes, or with those of an identifier")
)

// Rename replaces the names of tables in sql, and what qualifies columns with
// them, and leaves every other byte as it is. It asks with for the new name, as
// it is to be written, of each name in table position (see [Tables]); false
// keeps the old one. An alias is never renamed.
//
// It is an error when the readings disagree, save for those in which the text
// is not even closed, or when it cannot be told whether a name is meant.
func Rename(sql string, readings []Flavor, with func(name string) (string, bool)) (string, error) {
	var result string
	found := false
	for _, f := range readings {
		r := renaming{sql: sql, with: with, to: map[string]string{}, aliases: map[string]bool{}}
		if err := r.scan(f); errors.Is(err, errUnclosed) {
			continue
		} else if err != nil {
			return "", err
		}
		text := r.write()
		if found && text != result {
			return "", errAmbiguous
		}
		result, found = text, true
	}
	if !found {
		return "", errUnclosed
	}
	return result, nil
}

// Name returns the name that a token stands for: that of [Ident], or what a
// String holds, which SQLite takes for a name where it needs one.
func Name(sql string, t Token) string {
	if t.Kind != String {
		return Ident(sql, t)
	}
	return strings.Trim(t.Text(sql), `'"`)
}

// renaming is the work of one reading.
type renaming struct {
	sql  string
	with func(string) (string, bool)

	to      map[string]string // by folded old name
	aliases map[string]bool   // old names that are aliases, too
	places  []namePlace
}

// namePlace is where a name stands that may be replaced.
type namePlace struct {
	token     Token
	qualifier bool // of a column, or what a DELETE deletes from
}

// scan finds the names.
func (r *renaming) scan(f Flavor) error {
	names := NewTables(r.sql, f)
	for t, table, ok := names.Next(); ok; t, table, ok = names.Next() {
		if t.Kind != Word && t.Kind != QuotedIdent && t.Kind != String {
			continue
		}
		if err := r.take(&names, t, table); err != nil {
			return err
		}
	}
	if names.Unclosed() {
		return errUnclosed
	}
	return nil
}

// take notes a name.
func (r *renaming) take(names *Tables, t Token, table bool) error {
	rest := names.Rest()
	next, more := rest.NextCode()
	dotted := more && next.Is(r.sql, ".")
	switch {
	case !table && dotted && !names.Previous().Is(r.sql, "."):
		r.places = append(r.places, namePlace{t, true})
		return nil
	case !table:
		return nil
	}
	name := Name(r.sql, t)
	to, ok := r.with(name)
	switch {
	case !ok:
		return nil
	case t.Kind == String:
		return errString
	case dotted, names.Previous().Is(r.sql, "."):
		return errSchema
	}
	r.to[strings.ToLower(name)] = to
	if alias, ok := aliasOf(r.sql, next, rest); more && ok && strings.EqualFold(alias, name) {
		r.aliases[strings.ToLower(name)] = true
	}
	deleted := names.Previous().Is(r.sql, "DELETE")
	r.places = append(r.places, namePlace{t, deleted})
	return nil
}

// aliasOf returns the alias that begins with the token behind a table's name;
// rest stands behind that token.
func aliasOf(sql string, next Token, rest Scanner) (string, bool) {
	if next.Is(sql, "AS") {
		next, _ = rest.NextCode()
	}
	return Ident(sql, next), next.Kind == QuotedIdent || next.Kind == Word
}

func (r *renaming) write() string {
	var b strings.Builder
	end := 0
	for _, p := range r.places {
		name := strings.ToLower(Name(r.sql, p.token))
		to, ok := r.to[name]
		if !ok || p.qualifier && r.aliases[name] {
			continue
		}
		b.WriteString(r.sql[end:p.token.Start])
		b.WriteString(to)
		end = p.token.End
	}
	return b.String() + r.sql[end:]
}
