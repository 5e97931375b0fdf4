// Package dialect holds what differs between the databases shardid stores its
// own tables in and inspects: one small file per database.
//
// It promises that every identifier reaches the database either quoted or not
// at all. It knows SQL text only; it opens no connection and starts nothing.
package dialect
