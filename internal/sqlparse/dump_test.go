// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"fmt"
	"reflect"
	"strings"
)

// dump prints a tree, one node a line: the field, the type, the text of the node, and its values.
func dump(s *Statement) string {
	d := dumper{text: s.Text}
	verbs := [...]string{"Unknown", "Select", "Insert", "Replace", "Update", "Delete"}
	fmt.Fprintf(&d.out, "%s", verbs[s.Verb])
	if s.Why != "" {
		fmt.Fprintf(&d.out, " %s", s.Why)
	}
	if s.Executable {
		d.out.WriteString(" executable")
	}
	if s.Explains {
		d.out.WriteString(" explains")
	}
	if s.Limiting {
		d.out.WriteString(" limiting")
	}
	fmt.Fprintf(&d.out, ", names %s\n", strings.Join(s.Names, " "))
	switch {
	case s.Query != nil:
		d.fields(reflect.ValueOf(*s.Query), 1)
	case s.Insert != nil:
		d.fields(reflect.ValueOf(*s.Insert), 1)
	case s.Change != nil:
		d.fields(reflect.ValueOf(*s.Change), 1)
	}
	for _, w := range s.Writes {
		d.out.WriteString("  Writes " + strings.ReplaceAll(strings.TrimSuffix(dump(w), "\n"), "\n", "\n  ") + "\n")
	}
	return d.out.String()
}

type dumper struct {
	out  strings.Builder
	text string
}

var (
	spanType  = reflect.TypeFor[Span]()
	identType = reflect.TypeFor[Ident]()
	nameType  = reflect.TypeFor[Name]()
)

var enums = map[reflect.Type][]string{
	reflect.TypeFor[Operator](): {"", "OR", "XOR", "AND", "Not", "=", "<>", "<", "<=", ">", ">=", "<=>", "In", "Between", "IsNull", "Like",
		"+", "-", "*", "/", "%", "Exists", "Tuple", "Parens", "Case", "Cast", "Opaque"},
	reflect.TypeFor[LiteralKind](): {"", "Integer", "Decimal", "Text", "Null", "Default", "Other"},
	reflect.TypeFor[SetOp]():       {"", "UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT"},
	reflect.TypeFor[JoinKind]():    {"inner", "left", "right", "full", "cross"},
	reflect.TypeFor[Nulls]():       {"", "NULLS FIRST", "NULLS LAST"},
}

// fields prints the values of a node; short values are in its line already.
func (d *dumper) fields(v reflect.Value, depth int) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type == spanType && f.Anonymous || f.Type == reflect.TypeFor[*Statement]() || d.isShort(f.Type) || v.Field(i).IsZero() {
			continue
		}
		d.field(f.Name, v.Field(i), depth)
	}
}

func (d *dumper) isShort(t reflect.Type) bool {
	return t.Kind() < reflect.Array || t.Kind() == reflect.String || t == identType || t == nameType || t == spanType || t == reflect.TypeFor[[]Ident]() || t == reflect.TypeFor[[]Name]() || t == reflect.TypeFor[[]string]()
}

func (d *dumper) field(name string, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			d.field(name, v.Elem(), depth)
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.field(name, v.Index(i), depth)
		}
		if v.Len() == 0 {
			fmt.Fprintf(&d.out, "%s%s none\n", strings.Repeat("  ", depth), name)
		}
	case reflect.Struct:
		fmt.Fprintf(&d.out, "%s%s%s%s\n", strings.Repeat("  ", depth), name, d.typeOf(name, v), d.line(v))
		d.fields(v, depth+1)
	}
}

// typeOf returns the type of a field if its name does not determine it.
func (d *dumper) typeOf(name string, v reflect.Value) string {
	t := v.Type().Name()
	if t == "Operation" || strings.HasPrefix(name, t) || name == "Items" && t == "Item" || name == "From" || name == "Tables" || name == "Targets" {
		return ""
	}
	return " " + t
}

// line returns the short values of a node and its text.
func (d *dumper) line(v reflect.Value) string {
	var line strings.Builder
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type == spanType && f.Anonymous || !d.isShort(f.Type) || v.Field(i).IsZero() && enums[f.Type] == nil {
			continue
		}
		if value := d.short(v.Field(i)); value != "" {
			switch {
			case enums[f.Type] != nil:
				line.WriteString(" " + value)
			case value == "true":
				line.WriteString(" " + f.Name)
			default:
				line.WriteString(" " + f.Name + "=" + value)
			}
		}
	}
	return line.String() + "  «" + v.FieldByName("Span").Interface().(Span).Of(d.text) + "»"
}

func (d *dumper) short(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case Ident:
		return value.Name
	case Name:
		parts := make([]string, 0, maxParts)
		for _, p := range value.Parts {
			parts = append(parts, p.Name)
		}
		return strings.Join(parts, ".")
	case Span:
		return "«" + value.Of(d.text) + "»"
	case []Ident, []Name:
		list := make([]string, v.Len())
		for i := range list {
			list[i] = d.short(v.Index(i))
		}
		return strings.Join(list, ",")
	}
	if names := enums[v.Type()]; names != nil {
		return names[v.Uint()]
	}
	return fmt.Sprint(v.Interface())
}
