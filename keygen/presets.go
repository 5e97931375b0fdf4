// SPDX-License-Identifier: Apache-2.0

package keygen

import "time"

// These are the layouts of other systems. Each is a function, so that no program can change a
// layout for others. The comment of each says over how many shards `id % n` spreads the ids of
// one process evenly.

// Twitter is the layout of Twitter's snowflake: milliseconds since 2010-11-04 (41 bits), 5 bits
// of datacenter, 5 of worker, 12 of sequence (4096 shards). It expires on 2080-07-10.
func Twitter() Layout {
	return Layout{
		Epoch:  time.UnixMilli(1288834974657).UTC(),
		Unit:   time.Millisecond,
		Fields: []Field{{Time, 41}, {Datacenter, 5}, {Worker, 5}, {Sequence, 12}},
	}
}

// Baidu is UidGenerator's default: seconds since 2016-05-20 +08:00 (28 bits), 22 bits of
// worker, 13 of sequence (8192 shards). It expired on 2024-11-20: its ids still parse, but no
// more ids can be made. A later epoch or more time bits make it usable again.
func Baidu() Layout {
	return Layout{
		Epoch:  time.Unix(1463673600, 0).UTC(),
		Unit:   time.Second,
		Fields: []Field{{Time, 28}, {Worker, 22}, {Sequence, 13}},
	}
}

// Sonyflake is Sony's layout: units of 10 ms since 2014-09-01 (39 bits), 8 bits of sequence, 16
// of machine id. It expires in 2188. The machine id is the lowest field, so `id % n` is the
// same for all ids of a process when n is a power of two up to 65,536: take the shard from a
// hash of the id.
func Sonyflake() Layout {
	return Layout{
		Epoch:  time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC),
		Unit:   10 * time.Millisecond,
		Fields: []Field{{Time, 39}, {Sequence, 8}, {Worker, 16}},
	}
}

// SonyflakeV2 is the layout of sonyflake v2: the fields of Sonyflake, since 2025-01-01. It
// expires in 2199. The remark of [Sonyflake] about `id % n` applies.
func SonyflakeV2() Layout {
	l := Sonyflake()
	l.Epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}

// CosID is CosId's MillisecondSnowflakeId: Twitter's widths, milliseconds since 2019-12-24
// 16:00 UTC (41 bits), 10 bits of machine, 12 of sequence (4096 shards). It expires in 2089.
func CosID() Layout {
	return Layout{
		Epoch:  time.UnixMilli(1577203200000).UTC(),
		Unit:   time.Millisecond,
		Fields: []Field{{Time, 41}, {Worker, 10}, {Sequence, 12}},
	}
}

// CosIDSecond is CosId's SecondSnowflakeId: seconds since 2019-12-24 16:00 UTC (31 bits), 10
// bits of machine, 22 of sequence (4 million shards). It expires in 2088.
func CosIDSecond() Layout {
	return Layout{
		Epoch:  time.Unix(1577203200, 0).UTC(),
		Unit:   time.Second,
		Fields: []Field{{Time, 31}, {Worker, 10}, {Sequence, 22}},
	}
}

// Yitter is yitter's idgenerator with its defaults: milliseconds since 2020-02-19 18:20:02 UTC,
// 6 bits of worker, 6 of sequence (64 shards). Its ids are short, 16 digits, for 64 workers of
// 64,000 ids per second. yitter reserves the sequences 0 to 4 of each millisecond for clocks
// that go back, and begins at 5.
func Yitter() Layout {
	return Layout{
		Epoch:  time.UnixMilli(1582136402000).UTC(),
		Unit:   time.Millisecond,
		Fields: []Field{{Time, 51}, {Worker, 6}, {Sequence, 6}},
	}
}

// Instagram is Instagram's layout: milliseconds since 2011-08-24 (40 bits), 13 bits of logical
// shard, 10 of sequence (1024 shards). Instagram counts 41 bits of time, but the highest of
// them is the sign of a signed column: ids are positive until 2046.
func Instagram() Layout {
	return Layout{
		Epoch:  time.UnixMilli(1314220021721).UTC(),
		Unit:   time.Millisecond,
		Fields: []Field{{Time, 40}, {Worker, 13}, {Sequence, 10}},
	}
}

// JSSafe fits the 53 bits that a JavaScript number holds exactly: milliseconds since 2024-01-01
// (41 bits), 5 bits of worker, 7 of sequence (128 shards). It allows 32 workers of 128,000 ids
// per second, and expires in 2093.
func JSSafe() Layout {
	return Layout{
		Epoch:  time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:   time.Millisecond,
		Fields: []Field{{Time, 41}, {Worker, 5}, {Sequence, 7}},
	}
}

// Disposable is for worker ids that are new at each start, like those of WORKER_NODE: seconds
// since 2026-01-01 (29 bits), 21 bits of worker (2.1 million starts) and 13 of sequence (8,192
// ids per second and process, 8192 shards). Users of UidGenerator choose such a split, too. It
// expires in 2043.
func Disposable() Layout {
	return Layout{
		Epoch:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:   time.Second,
		Fields: []Field{{Time, 29}, {Worker, 21}, {Sequence, 13}},
	}
}

// Presets returns the layouts by name: twitter, baidu, sonyflake, sonyflake2, instagram,
// cosid, cosid-second, yitter, jssafe and disposable.
func Presets() map[string]Layout {
	return map[string]Layout{
		"twitter": Twitter(), "baidu": Baidu(), "sonyflake": Sonyflake(), "instagram": Instagram(), "jssafe": JSSafe(),
		"disposable": Disposable(), "sonyflake2": SonyflakeV2(), "cosid": CosID(), "cosid-second": CosIDSecond(), "yitter": Yitter(),
	}
}
