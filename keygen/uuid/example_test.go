// SPDX-License-Identifier: Apache-2.0

package uuid_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen/uuid"
)

// Keys for a BINARY(16) column.
func ExampleV7() {
	ids := uuid.V7()
	first, err := ids.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := ids.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := uuid.Time(first)
	fmt.Println(string(first[:]) < string(second[:]), time.Since(made) < time.Minute, err)
	// Output: true true <nil>
}

func ExampleV1() {
	id, err := uuid.HexKeys(uuid.V1()).Next(context.Background())
	fmt.Println("version", id[12:13], err)
	// Output: version 1 <nil>
}

func ExampleV4() {
	id, err := uuid.HexKeys(uuid.V4()).Next(context.Background())
	fmt.Println("version", id[12:13], err)
	// Output: version 4 <nil>
}

func ExampleV6() {
	id, err := uuid.HexKeys(uuid.V6()).Next(context.Background())
	fmt.Println("version", id[12:13], err)
	// Output: version 6 <nil>
}

// Keys for a CHAR(36) column.
func ExampleDashedKeys() {
	id, err := uuid.DashedKeys(uuid.V7()).Next(context.Background())
	fmt.Println(len(id), err)
	// Output: 36 <nil>
}

// Keys for a CHAR(32) column.
func ExampleHexKeys() {
	id, err := uuid.HexKeys(uuid.V4()).Next(context.Background())
	fmt.Println(len(id), err)
	// Output: 32 <nil>
}

// The UUID of a user's address is always the same, so that importing the user twice makes
// one row.
func ExampleV5() {
	fmt.Println(uuid.Dashed(uuid.V5(uuid.URL(), "https://example.com/users/42")))
	// Output: 38fcaf6d-63bc-5c9f-8a4f-de8cf4e651ed
}

func ExampleV3() {
	fmt.Println(uuid.Dashed(uuid.V3(uuid.DNS(), "www.example.com")))
	// Output: 5df41881-3aed-3515-88a7-2f4a814cf09e
}

func ExampleV2() {
	id, err := uuid.V2(uuid.Person, 1000)
	fmt.Println(uuid.Hex(id)[:8], err) // the user's number in hexadecimal
	// Output: 000003e8 <nil>
}

func ExampleParse() {
	id, err := uuid.Parse("017F22E279B07CC398C4DC0C0C07398F")
	fmt.Println(uuid.Dashed(id), err)
	// Output: 017f22e2-79b0-7cc3-98c4-dc0c0c07398f <nil>
}

// A model field that is 16 bytes in the database and a text in JSON.
func ExampleBinary() {
	type Order struct {
		ID uuid.Binary `json:"id"`
	}
	id, err := uuid.Parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(Order{ID: id})
	fmt.Println(string(text), err)
	// Output: {"id":"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"} <nil>
}

// The same name in another name space has another UUID.
func ExampleOID() {
	fmt.Println(uuid.Dashed(uuid.V5(uuid.OID(), "1.3.6.1")))
	fmt.Println(uuid.Dashed(uuid.V5(uuid.X500(), "1.3.6.1")))
	// Output:
	// 1447fa61-5277-5fef-a9b3-fbc6e44f4af3
	// be68e4ca-e25f-53bc-9dc2-7d11588b720d
}
