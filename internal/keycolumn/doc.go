// SPDX-License-Identifier: Apache-2.0

// Package keycolumn checks whether a column stores and compares sharding keys as the rule of its
// table expects: by its type, its precision and zone if it holds times, and its collation if it
// holds texts.
//
// gormplugin.Check, schema.Doctor and the inspection of a migration all use it. Package dialect
// reads the column, and package sharding determines which columns are checked. It reads only
// definitions and settings, never rows.
package keycolumn
