package redisgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// TextReply is the answer to a script of [Leases]; go-redis has *redis.Cmd for it.
type TextReply interface {
	// Text returns the answer, which is a text.
	Text() (string, error)
}

// TextClient runs scripts that answer with texts. It has to be safe for concurrent
// use. The same clients of go-redis v9 are TextClients that are [Client]s.
type TextClient[R TextReply] interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) R
}

// Leases is a ledger of leased worker ids, for [workerid.NewLeased]. Its clock is that
// of the Redis server, in microseconds; so units of layouts must be whole
// microseconds, or the error wraps [keygen.ErrLayout]. It is safe for concurrent use
// and holds nothing that needs closing.
//
// All of a namespace is in one hash, the key "Prefix:namespace", so that Redis loses
// it whole or not at all. The package's comment says what is noticed then.
type Leases struct {
	prefix string
	eval   func(ctx context.Context, script, key string, args ...any) (string, error)
}

var _ workerid.Ledger = (*Leases)(nil)

// NewLeases returns a ledger of which all keys begin with prefix, "shop:worker" say.
// It does not ask Redis yet. The type of the reply is inferred.
func NewLeases[R TextReply](client TextClient[R], prefix string) (*Leases, error) {
	switch {
	case nilness.Is(client):
		return nil, errNoClient
	case prefix == "":
		return nil, errors.New("redisgen: the prefix of the keys of leases is empty; name the application")
	}
	return &Leases{prefix, func(ctx context.Context, script, key string, args ...any) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		text, err := client.Eval(ctx, script, []string{key}, args...).Text()
		if cluster, ok := client.(reloader); ok && err != nil {
			cluster.ReloadState(ctx)
		}
		return text, explainedBy(err, leaseCures)
	}}, nil
}

// Create says that no process ever had a lease of the namespace, so that the first one
// begins at once: without it, the first one begins two terms later, as one does whose
// leases Redis has lost. Call it once in the life of an application, where Counter.Seed
// would be called, and never at each start. A namespace that is there stays as it is.
func (l *Leases) Create(ctx context.Context, namespace string) error {
	err := l.checkName("namespace", namespace)
	if err == nil {
		_, err = l.run(ctx, createScript, namespace)
	}
	if err != nil {
		return fmt.Errorf("redisgen: create the namespace %q: %w", namespace, err)
	}
	return nil
}

// Take implements workerid.Ledger.
func (l *Leases) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	e, err := l.take(ctx, c)
	if err != nil {
		return workerid.Entry{}, fmt.Errorf("redisgen: take a lease: %w", err)
	}
	return e, nil
}

// changes is how often a layout is tried to be changed: others may be doing it.
const changes = 10

func (l *Leases) take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	if err := l.check(c); err != nil {
		return e, err
	}
	for range changes {
		words, err := l.run(ctx, takeScript, c.Namespace, c.Layout.Fingerprint(), c.Layout.Epoch.UnixMicro(), c.Layout.Unit.Microseconds(),
			c.Term.Microseconds(), c.Owner, shown(c.Holder), c.Most, flag(c.Sticky))
		if err != nil {
			return e, err
		}
		switch words.kind {
		case "ok":
			err := words.numbers(&e.Worker, &e.Generation, &e.NotBefore, &e.Ceiling)
			return e, err
		case "full":
			return e, words.full(c)
		case "early":
			return e, fmt.Errorf("%w: by Redis' clock it is before the layout's epoch, %v", keygen.ErrLayout, c.Layout.Epoch.UTC())
		case "layout":
			if err := l.change(ctx, c, words.text); err != nil {
				return e, err
			}
		default:
			return e, words.unknown()
		}
	}
	return e, fmt.Errorf("%w: other processes change the layout of namespace %q again and again; end those with another layout", keygen.ErrLayout, c.Namespace)
}

// change gives the namespace the claim's layout when the one noted is the former one
// and no lease is in force.
func (l *Leases) change(ctx context.Context, c workerid.Claim, noted string) error {
	if c.Standing(noted) != workerid.Past {
		return c.Refuse(noted)
	}
	words, err := l.run(ctx, surveyScript, c.Namespace, noted)
	if err != nil {
		return err
	}
	var held, end int64
	if words.kind == "other" { // somebody was faster
		return nil
	}
	if err := words.numbers(&held, &end); err != nil {
		return err
	}
	if held > 0 {
		return c.Hold(noted, held, words.rest(2), time.UnixMicro(end))
	}
	from, err := c.Begin(time.UnixMicro(end))
	if err != nil {
		return err
	}
	_, err = l.run(ctx, changeScript, c.Namespace, noted, c.Layout.Fingerprint(), c.Layout.Epoch.UnixMicro(), c.Layout.Unit.Microseconds(),
		c.Layout.Tick(from), from.UnixMicro())
	return err
}

// Renew implements workerid.Ledger.
func (l *Leases) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	if err := l.check(c); err != nil {
		return 0, fmt.Errorf("redisgen: renew a lease: %w", err)
	}
	words, err := l.run(ctx, renewScript, c.Namespace, c.Layout.Fingerprint(), c.Term.Microseconds(), c.Owner, e.Worker, e.Generation)
	switch {
	case err != nil:
	case words.kind == "ok":
		err = words.numbers(&ceiling)
	case words.kind == "lost":
		err = fmt.Errorf("%w: worker id %d %s", keygen.ErrWorkerLost, e.Worker, words.text)
	default:
		err = words.unknown()
	}
	if err != nil {
		return 0, fmt.Errorf("redisgen: renew a lease: %w", err)
	}
	return ceiling, nil
}

// Return implements workerid.Ledger.
func (l *Leases) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	err := l.check(c)
	if err == nil {
		_, err = l.run(ctx, returnScript, c.Namespace, c.Owner, e.Worker, e.Generation, end)
	}
	if err != nil {
		return fmt.Errorf("redisgen: return a lease: %w", err)
	}
	return nil
}

// The limits are those of sqlstore, so that a ledger can be replaced by another.
const (
	maxName   = 64 // characters of a namespace or owner
	maxHolder = 128
)

func (l *Leases) check(c workerid.Claim) error {
	for what, name := range map[string]string{"namespace": c.Namespace, "owner": c.Owner} {
		if err := l.checkName(what, name); err != nil {
			return err
		}
	}
	switch {
	case c.Layout.Unit < time.Microsecond || c.Layout.Unit%time.Microsecond != 0:
		return fmt.Errorf("%w: leases need a unit of whole microseconds, not %v", keygen.ErrLayout, c.Layout.Unit)
	case !c.Layout.Epoch.Equal(c.Layout.Epoch.Truncate(time.Microsecond)):
		return fmt.Errorf("%w: leases need an epoch at a whole microsecond, not %v", keygen.ErrLayout, c.Layout.Epoch)
	}
	return nil
}

func (l *Leases) checkName(what, name string) error {
	if l.eval == nil {
		return errNoClient
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("the %s has %d characters; it must be UTF-8 text of 1 to %d", what, n, maxName)
	}
	return nil
}

// shown is a holder's name as it is kept.
func shown(holder string) string {
	holder = strings.ToValidUTF8(holder, "?")
	for utf8.RuneCountInString(holder) > maxHolder {
		_, n := utf8.DecodeRuneInString(holder)
		holder = holder[n:]
	}
	return holder
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// run runs a script on the key of a namespace.
func (l *Leases) run(ctx context.Context, script, namespace string, args ...any) (words, error) {
	text, err := l.eval(ctx, leaseLibrary+script, l.prefix+":"+namespace, args...)
	if err != nil {
		return words{}, err
	}
	kind, rest, _ := strings.Cut(text, " ")
	if kind == "anonymous" {
		return words{}, &keygen.SetupError{Err: errors.New("INFO server does not say the server's run_id, by which a fail-over is noticed"), Cure: "use a server that says it, Redis or Valkey, without a proxy in between"}
	}
	return words{kind, rest}, nil
}

// words is an answer of a script: a word and what it is about.
type words struct{ kind, text string }

// numbers reads the first numbers of the text.
func (w words) numbers(into ...*int64) error {
	fields := strings.SplitN(w.text, " ", len(into)+1)
	if len(fields) < len(into) {
		return w.unknown()
	}
	for i, n := range into {
		var err error
		if *n, err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return w.unknown()
		}
	}
	return nil
}

// rest is what follows after n words of the text.
func (w words) rest(n int) string {
	fields := strings.SplitN(w.text, " ", n+1)
	if len(fields) <= n {
		return ""
	}
	return fields[n]
}

func (w words) full(c workerid.Claim) error {
	var held int64
	if err := w.numbers(&held); err != nil {
		return err
	}
	return fmt.Errorf("%w: all %d worker ids of namespace %q are held, by %s; end some of these processes, wait until the leases of dead ones have ended, or change to a layout with more worker bits as package workerid describes",
		keygen.ErrNoWorker, held, c.Namespace, w.rest(1))
}

func (w words) unknown() error {
	return fmt.Errorf("the script answered %q, which it never does; is the key one of a ledger's?", w.kind+" "+w.text)
}
