// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"fmt"
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
	is, becomes := kindOf(from), kindOf(to)
	switch {
	case slices.Contains([]string{"enum", "set", "uuid", "inet4", "inet6"}, is.class) && (becomes.class == "text" || becomes.class == "char"):
		return false // they have no spaces at their ends
	case becomes.class == "text":
		return is.class != "text" && is.class != "char" && is.class != "json"
	case is.class == "binary" && becomes.class == "bytes":
		return false
	case is.class != becomes.class:
		return true
	}
	return becomes.exact < is.exact || is.class == "binary" && becomes.exact != is.exact
}

// typeKind is what has to be the same in two types so that both store the same values.
type typeKind struct {
	class string
	exact int // decimals, digits of a second, or the length to which bytes are filled up
}

var (
	typeArguments = regexp.MustCompile(`\(([^)]*)\)`)
	typeClasses   = map[string]string{
		"tinyint": "integer", "smallint": "integer", "mediumint": "integer", "int": "integer", "bigint": "integer", "integer": "integer",
		"decimal": "decimal", "numeric": "decimal",
		"varchar": "text", "character varying": "text", "text": "text", "tinytext": "text", "mediumtext": "text", "longtext": "text",
		"char": "char", "character": "char",
		"varbinary": "bytes", "tinyblob": "bytes", "blob": "bytes", "mediumblob": "bytes", "longblob": "bytes", "bytea": "bytes",
	}
	// unlimited is the precision of types without arguments on PostgreSQL; MySQL and MariaDB always show that of a
	// decimal, and mean none for times.
	unlimited = map[string]int{"numeric": 1 << 20, "timestamp without time zone": 6, "timestamp with time zone": 6, "time without time zone": 6, "time with time zone": 6, "interval": 6}
)

// kindOf reads a type as a database writes it, such as "decimal(10,2) unsigned" or "time(3) without time
// zone". Arguments that do not affect values are left out.
func kindOf(definition string) typeKind {
	name, _, _ := strings.Cut(strings.ToLower(definition), "/*") // MariaDB notes old formats
	var arguments []string
	if found := typeArguments.FindStringSubmatch(name); found != nil {
		arguments = strings.Split(found[1], ",")
	}
	name = typeArguments.ReplaceAllString(name, "")
	name = strings.TrimSpace(strings.NewReplacer(" unsigned", "", " zerofill", "").Replace(name))
	class, known := typeClasses[name]
	if !known {
		class = name
	}
	last := unlimited[name]
	if len(arguments) > 0 {
		last, _ = strconv.Atoi(arguments[len(arguments)-1]) // members of an ENUM are none
	}
	switch class {
	case "decimal":
		if len(arguments) == 1 {
			last = 0
		}
	case "datetime", "timestamp", "time", "timestamp without time zone", "timestamp with time zone", "time without time zone", "time with time zone", "interval", "binary":
	default:
		last = 0
	}
	return typeKind{class, last}
}
