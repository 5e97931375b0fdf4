// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/keygen"
)

// Env returns an assigner of the number in an environment variable. Kubernetes sets one to a
// pod's index with fieldRef metadata.labels['apps.kubernetes.io/pod-index']. If the variable is
// missing, empty or not a number, that is an error, never worker id 0.
//
// A pod's index is not exclusive: a pod that was force-deleted may still run beside its
// successor. Where that can happen, use leases, or [Recorded] on a volume that only one pod can
// mount. The remarks of [Static] about clocks apply, too.
func Env(name string) keygen.Assigner {
	return localNumber(func() (int64, error) {
		text, ok := os.LookupEnv(name)
		if !ok {
			return 0, fmt.Errorf("the environment variable %s is not set", name)
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the environment variable %s is %q, which is not a number", name, text)
		}
		return id, nil
	})
}

// Ordinal returns an assigner of the number at the end of the machine's name, as pods of a
// StatefulSet have one: 3 for "orders-3". The remarks of [Env] apply.
func Ordinal() keygen.Assigner {
	return localNumber(func() (int64, error) {
		name, err := os.Hostname()
		if err != nil {
			return 0, err
		}
		return ordinal(name)
	})
}

func ordinal(hostname string) (int64, error) {
	name, _, _ := strings.Cut(hostname, ".")
	dash := strings.LastIndexByte(name, '-')
	id, err := strconv.ParseUint(name[dash+1:], 10, 63)
	if dash < 0 || err != nil {
		return 0, fmt.Errorf("the host name %q does not end in -NUMBER, as a StatefulSet's pods do", hostname)
	}
	return int64(id), nil
}

// PrivateIP returns an assigner of the lower 16 bits of addr, as sonyflake uses them. They are
// distinct for the machines of one network of 65,536 addresses, if each machine runs one
// process. Addr must be a private IPv4 address (10/8, 172.16/12 or 192.168/16) of one of this
// machine's interfaces, and the layout must have at least 16 worker bits.
func PrivateIP(addr netip.Addr) keygen.Assigner { return privateIP(addr, net.InterfaceAddrs) }

func privateIP(addr netip.Addr, own func() ([]net.Addr, error)) keygen.Assigner {
	return minWorkerBits{localNumber(func() (int64, error) {
		addr := addr.Unmap()
		if !addr.Is4() || !addr.IsPrivate() {
			return 0, fmt.Errorf("%v is not a private IPv4 address", addr)
		}
		if err := checkLocalAddress(own, addr); err != nil {
			return 0, err
		}
		b := addr.As4()
		return int64(b[2])<<8 | int64(b[3]), nil
	}), 16}
}

// checkLocalAddress refuses the address of another machine, because that machine uses it for
// its own ids. In a container only the container's addresses are local.
func checkLocalAddress(own func() ([]net.Addr, error), addr netip.Addr) error {
	addrs, err := own()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == addr
	}) {
		return fmt.Errorf("%v is not an address of this machine, which has %v", addr, addrs)
	}
	return nil
}

// minWorkerBits refuses layouts with too few worker bits. The numbers of some machines would
// fit, and a machine that is added later would fail.
type minWorkerBits struct {
	keygen.Assigner
	bits int
}

// Acquire returns the lease, or an error that wraps keygen.ErrNoWorker.
func (w minWorkerBits) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	if l.WorkerBits() < w.bits {
		return nil, fmt.Errorf("workerid: %w: the layout has %d worker bits and needs %d", keygen.ErrNoWorker, l.WorkerBits(), w.bits)
	}
	return w.Assigner.Acquire(ctx, l)
}
