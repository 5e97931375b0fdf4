package workerid_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

func ExampleStatic() {
	lease, err := workerid.Static(5).Acquire(context.Background(), keygen.Twitter())
	fmt.Println(lease.ID(), err)
	_, err = workerid.Static(1024).Acquire(context.Background(), keygen.Twitter())
	fmt.Println(err)
	// Output:
	// 5 <nil>
	// workerid: keygen: no worker id: 1024 is not between 0 and 1023, which is what the layout has room for
}

func ExampleEnv() {
	if err := os.Setenv("POD_INDEX", "2"); err != nil {
		fmt.Println(err)
		return
	}
	lease, err := workerid.Env("POD_INDEX").Acquire(context.Background(), keygen.Twitter())
	fmt.Println(lease.ID(), err)
	// Output: 2 <nil>
}

func ExamplePrivateIP() {
	addr := netip.MustParseAddr("10.1.2.3") // of this machine
	lease, err := workerid.PrivateIP(addr).Acquire(context.Background(), keygen.Sonyflake())
	fmt.Println(lease.ID(), err)
	// Output: 515 <nil>
}

// With a record a worker id that was given by hand remembers how far it got.
func ExampleRecorded() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	worker := workerid.Recorded(filepath.Join(dir, "worker"), workerid.Static(5))
	lease, err := worker.Acquire(context.Background(), keygen.Twitter())
	if err != nil {
		fmt.Println(err)
		return
	}
	window := lease.(keygen.Window)
	if err := window.Release(context.Background(), window.NotBefore()+100); err != nil {
		fmt.Println(err)
		return
	}
	next, err := worker.Acquire(context.Background(), keygen.Twitter())
	fmt.Println(next.NotBefore()-window.NotBefore(), err)
	// Output: 100 <nil>
}
