// Package migrate moves live tables into shards.
package migrate
