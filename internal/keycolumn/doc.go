// SPDX-License-Identifier: Apache-2.0

// Package keycolumn checks whether a column stores and compares sharding keys as the
// rule of its table takes them: by its type, its precision and zone if it holds times,
// and its collation if it holds texts.
//
// It promises one answer to everybody who asks: gormplugin.Check, schema.Doctor and the
// inspection of a migration. What a column is, package dialect reads; which column is
// asked about, package sharding knows. It looks at definitions and settings alone, never
// at rows.
package keycolumn
