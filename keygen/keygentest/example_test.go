package keygentest_test

import (
	"fmt"

	"github.com/shardid/shardid/keygen/keygentest"
)

func ExampleDuplicate() {
	fmt.Println(keygentest.Duplicate([]int64{3, 1, 2}))
	fmt.Println(keygentest.Duplicate([]int64{3, 1, 2, 3}))
	// Output:
	// 0 false
	// 3 true
}
