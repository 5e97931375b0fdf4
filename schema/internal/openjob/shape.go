// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Misfit says why a shard's table cannot take the rows of a table of the source, and what to do; "" if it
// can. It compares names of columns and keys, and finds types that would change values without an error. A
// value that is too large for the shard's column is an error of the copy, and no misfit.
func Misfit(of, shard backend.Table) (why, fix string) {
	for _, c := range of.Columns {
		found, ok := shard.Column(c.Name)
		switch {
		case !ok && slices.ContainsFunc(shard.Generated, func(name string) bool { return strings.EqualFold(name, c.Name) }):
			return fmt.Sprintf("its column %s is generated, and that of %s is not", c.Name, of.Name), "make it an ordinary column"
		case !ok:
			return "it has no column " + c.Name, "add the column"
		case slices.Contains(of.Widened, c.Name) && narrow(found):
			return fmt.Sprintf("its column %s is %s, and generated ids need BIGINT", c.Name, found.Definition), "make the column BIGINT"
		case changesValues(c.Definition, found.Definition):
			return fmt.Sprintf("its column %s is %s, and in %s %s, so that a copy would change values without an error", c.Name, found.Definition, of.Name, c.Definition), "give the column that type"
		}
	}
	for _, c := range shard.Columns {
		if _, ok := of.Column(c.Name); !ok {
			return fmt.Sprintf("it has the column %s, which %s has not", c.Name, of.Name), "drop the column"
		}
	}
	if !strings.EqualFold(shard.Key, of.Key) {
		return fmt.Sprintf("its primary key is %s, and not %s as that of %s", shard.Key, of.Key, of.Name), "alter the key"
	}
	return "", ""
}

// narrow reports whether an integer column is narrower than 64 bits.
func narrow(c backend.Column) bool {
	kind := kindOf(c.Definition)
	return kind.class == "integer" && !strings.HasPrefix(strings.ToLower(c.Definition), "bigint")
}

// changesValues reports whether a database stores a value of a column of one type as another value in a
// column of the other type, without an error. Unknown definitions change none.
func changesValues(from, to string) bool {
	if from == "" || to == "" {
		return false
	}
	from, isArray := strings.CutSuffix(from, "[]")
	to, becomesArray := strings.CutSuffix(to, "[]")
	if isArray || becomesArray {
		return isArray != becomesArray || changesValues(from, to)
	}
	is, becomes := kindOf(from), kindOf(to)
	switch {
	case slices.Contains([]string{"enum", "set", "uuid", "inet4", "inet6"}, is.class) && (becomes.class == "text" || becomes.class == "char"):
		return false // they have no spaces at their ends
	case is.class == "text" && becomes.class == "text":
		return shorter(is.name, is.length, becomes)
	case becomes.class == "text":
		return is.class != "char" && is.class != "json"
	case is.class == "binary" && becomes.class == "bytes":
		return false
	case is.class != becomes.class:
		return true
	}
	return becomes.exact < is.exact || is.class == "binary" && becomes.exact != is.exact || lacks(becomes, is)
}

// shorter reports whether a column is shorter than texts of another one: a database cuts spaces off their ends until they fit.
func shorter(name string, length int, becomes typeKind) bool {
	switch {
	case becomes.name == "tinytext" && name != "tinytext":
		return 4*length > becomes.length // bytes of its characters
	case becomes.name == "text" && strings.Contains(name, "char"):
		return false // those of MySQL and MariaDB have at most as many bytes
	}
	return becomes.length < length
}

// lacks reports whether a member of an ENUM or a SET is missing, so that the server takes one that it considers equal, or
// stands at another place of a SET, whose text has the members in that order.
func lacks(becomes, is typeKind) bool {
	last := -1
	for _, member := range is.members {
		at := slices.Index(becomes.members, member)
		if at < 0 || is.class == "set" && at < last {
			return true
		}
		last = at
	}
	return false
}

// typeKind is what has to be the same in two types so that both store the same values.
type typeKind struct {
	name, class string
	exact       int      // decimals, digits of a second, or the length to which bytes are filled up
	length      int      // of the largest text
	members     []string // of an ENUM or a SET, as the database quotes them
}

// most is at least as much as any length or number of decimals.
const most = math.MaxInt32

var (
	typeArguments = regexp.MustCompile(`\(([^)]*)\)`)
	typeMembers   = regexp.MustCompile(`'(?:[^']|'')*'`)
	typeClasses   = map[string]string{
		"tinyint": "integer", "smallint": "integer", "mediumint": "integer", "int": "integer", "bigint": "integer", "integer": "integer",
		"decimal": "decimal", "numeric": "decimal",
		"varchar": "text", "character varying": "text", "text": "text", "tinytext": "text", "mediumtext": "text", "longtext": "text",
		"char": "char", "character": "char",
		"varbinary": "bytes", "tinyblob": "bytes", "blob": "bytes", "mediumblob": "bytes", "longblob": "bytes", "bytea": "bytes",
	}
	// exactness has typeKind.exact of types without arguments; with them it is the last one. MySQL and MariaDB always show that
	// of a decimal, and mean none for times.
	exactness = map[string]int{
		"decimal": 0, "numeric": most, "float": most, "double": most, "binary": 0, "datetime": 0, "timestamp": 0, "time": 0,
		"timestamp without time zone": 6, "timestamp with time zone": 6, "time without time zone": 6, "time with time zone": 6,
		"interval": 6, "interval day to second": 6, "interval hour to second": 6, "interval minute to second": 6, "interval second": 6,
	}
	// textLengths are those of types without arguments.
	textLengths = map[string]int{"tinytext": 1<<8 - 1, "text": 1<<16 - 1, "mediumtext": 1<<24 - 1}
)

// kindOf reads a type as a database writes it, such as "decimal(10,2) unsigned" or "time(3) without time
// zone". Arguments that do not affect values are left out.
func kindOf(definition string) typeKind {
	for _, class := range []string{"enum", "set"} {
		if members, is := strings.CutPrefix(definition, class+"("); is {
			return typeKind{name: class, class: class, members: typeMembers.FindAllString(members, -1)}
		}
	}
	name, _, _ := strings.Cut(strings.ToLower(definition), "/*") // MariaDB notes old formats
	var arguments []string
	if found := typeArguments.FindStringSubmatch(name); found != nil {
		arguments = strings.Split(found[1], ",")
	}
	name = typeArguments.ReplaceAllString(name, "")
	name = strings.TrimSpace(strings.NewReplacer(" unsigned", "", " zerofill", "").Replace(name))
	kind := typeKind{name: name, class: cmp.Or(typeClasses[name], name)}
	last, given := 0, len(arguments) > 0
	if given {
		last, _ = strconv.Atoi(arguments[len(arguments)-1])
	}
	if kind.class == "text" {
		kind.length = cmp.Or(last, textLengths[name], most)
	}
	exact, counts := exactness[name]
	switch {
	case counts && kind.class == "decimal" && len(arguments) == 1:
		kind.exact = 0
	case counts && given:
		kind.exact = last
	default:
		kind.exact = exact
	}
	return kind
}
