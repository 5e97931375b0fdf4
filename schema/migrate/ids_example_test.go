// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
)

// Three shops had their own databases. From now on the ids of the second one have the
// remainder 2.
func ExampleAffine() {
	ids := migrate.Affine(3, 2)
	for _, old := range []int64{1, 2, 1000} {
		id, err := ids.New(old)
		if err != nil {
			log.Fatal(err)
		}
		back, err := ids.Old(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(old, "becomes", id, "and comes back as", back)
	}

	// Output:
	// 1 becomes 5 and comes back as 1
	// 2 becomes 8 and comes back as 2
	// 1000 becomes 3002 and comes back as 1000
}

// New rows continue where the source's counter ends, under ids that have old ones for a
// rollback.
func ExampleIDs_New() {
	ids := migrate.Keyed([16]byte{15: 1}) // from `openssl rand -hex 16`
	next := int64(1000)                   // a segment generator's, above the highest id of the source
	counter := keygen.Func[int64](func(context.Context) (int64, error) { next++; return next, nil })
	generator := keygen.Map(counter, ids.New)

	id, err := generator.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	old, err := ids.Old(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the new row comes back as", old)

	// Output: the new row comes back as 1001
}
