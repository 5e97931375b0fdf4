// SPDX-License-Identifier: Apache-2.0

// Package catalog describes tables and columns as the planner needs them: types, unique keys, defaults, and how the database
// compares values. Package columns reads these descriptions from databases.
package catalog
