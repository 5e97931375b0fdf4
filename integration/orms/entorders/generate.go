// SPDX-License-Identifier: Apache-2.0

// Package entorders is what ent makes of the package schema below, in which nothing says
// that the tables are sharded. It is made anew by go generate.
package entorders

//go:generate env CGO_ENABLED=0 go run -mod=mod entgo.io/ent/cmd/ent@v0.14.5 generate ./schema
