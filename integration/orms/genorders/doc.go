// SPDX-License-Identifier: Apache-2.0

// Package genorders is what gorm.io/gen makes of the models below, in which nothing says that the
// tables are sharded. It is made anew by go generate.
package genorders

//go:generate env CGO_ENABLED=0 go run -mod=mod generate.go
