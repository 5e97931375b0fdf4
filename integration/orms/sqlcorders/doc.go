// SPDX-License-Identifier: Apache-2.0

// Package sqlcorders is what sqlc makes of query.sql and schema.sql, in which nothing
// says that the tables are sharded. It is made anew by go generate.
package sqlcorders

//go:generate env CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
