// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
)

const sphere = "shardingsphere"

// auditor is the name of the auditor that refuses statements without a sharding key, like this
// module's adapters.
const auditor = "sharding_key_required"

// ShardingSphere returns the rules of ShardingSphere 5.3 and newer (rules.yaml), with INLINE
// algorithms, the groups as binding tables, the broadcast tables, and an auditor that refuses
// statements without the sharding key. The router's names of databases become those of data
// sources.
//
// Low, Mod, OffsetStep and Bits can be expressed, also for negative keys. Any other rule is
// refused.
func ShardingSphere(r *sharding.Router) (Export, error) {
	var out yamlText
	var algorithms yamlText
	var errs []error
	notes := []string{goldenOnly("ShardingSphere")}
	all := layouts(r)
	out.line(0, "rules:")
	out.line(0, "- !SHARDING")
	out.line(1, "tables:")
	for _, l := range all {
		errs = append(errs, sphereTable(&out, &algorithms, l))
		notes = append(notes, geneNotes(l, "the auditor refuses statements with only that column")...)
	}
	errs = append(errs, bind(&out, all))
	if err := errors.Join(errs...); err != nil {
		return Export{}, err
	}
	out.line(1, "shardingAlgorithms:")
	out.add(algorithms)
	out.line(1, "auditors:")
	out.line(2, auditor+":")
	out.line(3, "type: DML_SHARDING_CONDITIONS")
	out.broadcast(r.Broadcasts())
	return Export{[]File{{"rules.yaml", out.String()}}, notes}, nil
}

// geneNotes returns notes on the columns by which the other system cannot route.
func geneNotes(l layout, effect string) []string {
	var notes []string
	for _, also := range l.Also {
		notes = append(notes, fmt.Sprintf("%s.%s carries the slot of %s, which cannot be expressed there: %s.", l.Name, also.Column, l.Key, effect))
	}
	return notes
}

// sphereTable writes one table and its two algorithms.
func sphereTable(out, algorithms *yamlText, l layout) error {
	database, table, err := expressions(l)
	if err != nil {
		return err
	}
	out.line(2, yamlWord(l.Name)+":")
	out.line(3, "actualDataNodes: "+dataNodes(l))
	for kind, expression := range pairs("database", database, "table", table) {
		algorithm := l.Name + "_" + kind
		out.line(3, kind+"Strategy:")
		out.line(4, "standard:")
		out.line(5, "shardingColumn: "+yamlWord(l.Key))
		out.line(5, "shardingAlgorithmName: "+algorithm)
		algorithms.line(2, algorithm+":")
		algorithms.line(3, "type: INLINE")
		algorithms.line(3, "props:")
		algorithms.line(4, "algorithm-expression: "+yamlWord(expression))
	}
	out.line(3, "auditStrategy:")
	out.line(4, "auditorNames:")
	out.line(4, "- "+auditor)
	out.line(4, "allowHintDisable: false")
	return nil
}

// pairs yields the key and value of a, then of b.
func pairs(a, x, b, y string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		_ = yield(a, x) && yield(b, y)
	}
}

// plainSource matches names of data sources that need no quotes in YAML and in inline expressions.
var plainSource = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// expressions returns the expressions of the data source and of the table.
func expressions(l layout) (database, table string, err error) {
	number, ok := inlineOf(l)
	if !ok {
		return "", "", &RefusedError{
			sphere, l.Name, fmt.Sprintf("an INLINE expression cannot compute the rule %s", l.rule.Kind),
			"write it as a CLASS_BASED algorithm in Java, or shard by Low, Mod, OffsetStep or Bits",
		}
	}
	databases := make([]string, len(l.targets))
	tables := make([]string, len(l.targets))
	for i, t := range l.targets {
		if !plainSource.MatchString(t.DB) {
			return "", "", &RefusedError{
				sphere, l.Name, fmt.Sprintf("the database name %q is not allowed in an inline expression", t.DB),
				"use names of letters, digits, _ and - for the databases",
			}
		}
		databases[i], tables[i] = t.DB, t.Table
	}
	return number.choose(databases), number.choose(tables), nil
}

// dataNodes lists the physical tables of each database.
func dataNodes(l layout) string {
	var order []string
	tables := map[string][]string{}
	for _, t := range l.distinct() {
		if tables[t.DB] == nil {
			order = append(order, t.DB)
		}
		tables[t.DB] = append(tables[t.DB], t.Table)
	}
	for i, db := range order {
		if list := tables[db]; len(list) > 1 {
			order[i] += ".${['" + strings.Join(list, "', '") + "']}"
			continue
		}
		order[i] += "." + tables[db][0]
	}
	return strings.Join(order, ",")
}

// bind writes the groups of two or more tables.
func bind(out *yamlText, all []layout) error {
	var errs []error
	var lines []string
	for _, group := range groups(all) {
		names := make([]string, len(group))
		for i, l := range group {
			names[i] = l.Name
			errs = append(errs, bindable(group[0], l))
		}
		lines = append(lines, "- "+strings.Join(names, ","))
	}
	if len(lines) > 0 {
		out.line(1, "bindingTables:")
	}
	for _, line := range lines {
		out.line(1, line)
	}
	return errors.Join(errs...)
}

// groups returns the tables of each group that has more than one.
func groups(all []layout) [][]layout {
	var names []string
	byName := map[string][]layout{}
	for _, l := range all {
		if l.Group == "" {
			continue
		}
		if byName[l.Group] == nil {
			names = append(names, l.Group)
		}
		byName[l.Group] = append(byName[l.Group], l)
	}
	var out [][]layout
	for _, name := range names {
		if group := byName[name]; len(group) > 1 {
			out = append(out, group)
		}
	}
	return out
}

// bindable compares two tables as ShardingSphere does at its start.
func bindable(first, l layout) error {
	equalValues := first.Key == l.Key || len(first.Also)+len(l.Also) == 0
	if equalValues && structure(first) == structure(l) {
		return nil
	}
	return &RefusedError{
		sphere, l.Name, fmt.Sprintf("it is in a group with %s, but binding tables must have equal sharding columns and equal expressions", first.Name),
		"number the tables of the group in the same way, and give them the same sharding column",
	}
}

var trailingDigits = regexp.MustCompile(`[0-9]+$`)

// structure returns the expressions of a table without its own names.
func structure(l layout) string {
	database, table, err := expressions(l)
	if err != nil {
		return err.Error()
	}
	strip := func(expression, name string) string {
		prefix := trailingDigits.ReplaceAllString(name, "")
		return strings.Replace(strings.Replace(expression, prefix, "", 1), l.Key, "", 1)
	}
	return strip(database, l.targets[0].DB) + "|" + strip(table, l.targets[0].Table)
}

// yamlText collects lines of YAML.
type yamlText struct{ lines []string }

func (y *yamlText) line(depth int, text string) {
	y.lines = append(y.lines, strings.Repeat("  ", depth)+text+"\n")
}

func (y *yamlText) add(more yamlText) { y.lines = append(y.lines, more.lines...) }

// String returns the whole text.
func (y *yamlText) String() string { return strings.Join(y.lines, "") }

func (y *yamlText) broadcast(tables []string) {
	if len(tables) == 0 {
		return
	}
	y.line(0, "- !BROADCAST")
	y.line(1, "tables:")
	for _, name := range tables {
		y.line(1, "- "+yamlWord(name))
	}
}

// yamlWord quotes names that have another meaning in YAML.
func yamlWord(name string) string {
	if slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(name)) {
		return "'" + name + "'"
	}
	if strings.HasPrefix(name, "$") || strings.ContainsAny(name, "'#") {
		return "'" + strings.ReplaceAll(name, "'", "''") + "'"
	}
	return name
}
