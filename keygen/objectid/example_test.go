// SPDX-License-Identifier: Apache-2.0

package objectid_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen/objectid"
)

// Keys for a BINARY(12) column.
func ExampleNew() {
	ids := objectid.New(objectid.Config{})
	id, err := ids.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(objectid.Hex(id)), time.Since(objectid.Time(id)) < time.Minute)
	// Output: 24 true
}

// Keys for a CHAR(24) column.
func ExampleHexKeys() {
	id, err := objectid.HexKeys(objectid.New(objectid.Config{})).Next(context.Background())
	fmt.Println(len(id), err)
	// Output: 24 <nil>
}

// An id contains the time at which it was made.
func ExampleSplit() {
	id, err := objectid.Parse("507f1f77bcf86cd799439011")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := objectid.Split(id)
	fmt.Printf("%v, process %x, counter %d\n", p.Time, p.Process, p.Counter)
	// Output: 2012-10-17 21:13:27 +0000 UTC, process bcf86cd799, counter 4427793
}

// A model field that is 12 bytes in the database and a text in JSON.
func ExampleBinary() {
	type Order struct {
		ID objectid.Binary `json:"id"`
	}
	id, err := objectid.Parse("507f1f77bcf86cd799439011")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(Order{ID: id})
	fmt.Println(string(text), err)
	// Output: {"id":"507f1f77bcf86cd799439011"} <nil>
}
