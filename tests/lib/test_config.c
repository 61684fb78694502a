/* test_config.c - defaults, limits and sizes of a connection's configuration. */
#include <config.h>

#include "lib/config.h"

#include "tests/kit/run.h"

#include <stddef.h>
#include <string.h>

#define ABSENT UINT64_C(0xdeadbeef)

static uint64_t
field(const reeve_cfg_t *c, size_t off)
{
	uint32_t v32;
	uint64_t v64;

	if (off >= offsetof(reeve_cfg_t, grow)) {
		memcpy(&v64, (const char *)c + off, sizeof(v64));
		return v64;
	}
	memcpy(&v32, (const char *)c + off, sizeof(v32));
	return v32;
}

static void
set_field(reeve_cfg_t *c, size_t off, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;

	if (off >= offsetof(reeve_cfg_t, grow))
		memcpy((char *)c + off, &v, sizeof(v));
	else
		memcpy((char *)c + off, &v32, sizeof(v32));
}

#define F(name) offsetof(reeve_cfg_t, name)
static const struct {
	size_t off;
	uint64_t set; /* ABSENT: not set */
	int rc;
	uint64_t got;
} row[] = {
    {F(proto), ABSENT, 0, REEVE_YAMUX},
    {F(proto), REEVE_YAMUX, 0, REEVE_YAMUX},
    {F(proto), REEVE_MPLEX, 0, REEVE_MPLEX},
    {F(proto), 3, REEVE_EINVAL, 0},
    {F(max_in), ABSENT, 0, 8192},
    {F(max_in), 1, 0, 1},
    {F(max_in), REEVE_OFF, 0, UINT32_MAX},
    {F(max_out), ABSENT, 0, UINT32_MAX},
    {F(max_out), 7, 0, 7},
    {F(accept_backlog), ABSENT, 0, 256},
    {F(max_unacked), ABSENT, 0, 256},
    {F(max_unacked), REEVE_OFF, 0, UINT32_MAX},
    {F(max_window), ABSENT, 0, 16777216},
    {F(max_window), 262143, REEVE_EINVAL, 0},
    {F(max_window), 262144, 0, 262144},
    {F(max_window), REEVE_OFF, 0, UINT32_MAX},
    {F(send_budget), ABSENT, 0, 262144},
    {F(split), ABSENT, 0, 0},
    {F(split), 1048576, 0, 1048576},
    {F(split), 1048577, REEVE_EINVAL, 0},
    {F(split), REEVE_OFF, REEVE_EINVAL, 0},
    {F(keepalive_ms), ABSENT, 0, 30000},
    {F(keepalive_ms), REEVE_OFF, 0, REEVE_OFF},
    {F(keepalive_timeout_ms), ABSENT, 0, 10000},
    {F(write_ms), ABSENT, 0, 10000},
    {F(linger_ms), ABSENT, 0, 300000},
    {F(churn_burst), ABSENT, 0, 1000},
    {F(churn_per_s), ABSENT, 0, 500},
    {F(flags), ABSENT, 0, 0},
    {F(flags), REEVE_CFG_LAZY_ACK, 0, REEVE_CFG_LAZY_ACK},
    {F(flags), 0x80000000u, REEVE_EINVAL, 0},
    {F(grow), ABSENT, 0, UINT64_C(896) << 20},
    {F(grow), REEVE_OFF, 0, UINT64_MAX},
    {F(grow), UINT64_C(1) << 40, 0, UINT64_C(1) << 40},
    {F(max_recv), ABSENT, 0, UINT64_C(256) << 20},
    {F(max_recv), (1 << 20) - 1, REEVE_EINVAL, 0},
    {F(max_recv), 1 << 20, 0, 1 << 20},
    {F(max_recv), REEVE_OFF, 0, UINT64_MAX},
};

START_TEST(fields_are_resolved_one_by_one)
{
	reeve_cfg_t in, out;
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		reeve_cfg_init(&in);
		memset(&out, 0x11, sizeof(out));
		if (row[i].set != ABSENT)
			set_field(&in, row[i].off, row[i].set);
		ck_assert_msg(rv_cfg_resolve(&out, &in) == row[i].rc, "row %zu", i);
		if (row[i].rc != 0)
			ck_assert_uint_eq(out.size, 0x11111111);
		else
			ck_assert_msg(field(&out, row[i].off) == row[i].got, "row %zu", i);
	}
}
END_TEST

START_TEST(no_configuration_is_all_defaults)
{
	reeve_cfg_t in, a, b;

	reeve_cfg_init(&in);
	ck_assert_int_eq(rv_cfg_resolve(&a, NULL), 0);
	ck_assert_int_eq(rv_cfg_resolve(&b, &in), 0);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_uint_eq(a.size, sizeof(a));
}
END_TEST

START_TEST(older_and_newer_callers_are_understood)
{
	union {
		reeve_cfg_t cfg;
		unsigned char bytes[RV_CFG_SIZE_MAX + 1];
	} in;
	reeve_cfg_t out;

	memset(&in, 0xff, sizeof(in)); /* an older one: what is behind its size is not read */
	reeve_cfg_init_sized(&in.cfg, F(max_out));
	in.cfg.max_in = 5;
	ck_assert_int_eq(rv_cfg_resolve(&out, &in.cfg), 0);
	ck_assert_uint_eq(out.max_in, 5);
	ck_assert_uint_eq(out.accept_backlog, 256);

	reeve_cfg_init_sized(&in.cfg, RV_CFG_SIZE_MAX);
	ck_assert_int_eq(rv_cfg_resolve(&out, &in.cfg), 0);
	ck_assert_uint_eq(out.size, sizeof(out));
	in.bytes[sizeof(out)] = 1;
	ck_assert_int_eq(rv_cfg_resolve(&out, &in.cfg), REEVE_EINVAL);
	in.bytes[sizeof(out)] = 0;
	in.bytes[RV_CFG_SIZE_MAX - 1] = 1;
	ck_assert_int_eq(rv_cfg_resolve(&out, &in.cfg), REEVE_EINVAL);
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
	static const uint32_t sizes[] = {0, 1, 3, RV_CFG_SIZE_MAX + 1, UINT32_MAX};
	reeve_cfg_t in, out;
	size_t i;

	reeve_cfg_init(&in);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		in.size = sizes[i];
		ck_assert_int_eq(rv_cfg_resolve(&out, &in), REEVE_EINVAL);
	}
	in.size = 4;
	ck_assert_int_eq(rv_cfg_resolve(&out, &in), 0);
	reeve_cfg_init_sized(NULL, 10);
	in.size = 77;
	reeve_cfg_init_sized(&in, 3);
	ck_assert_uint_eq(in.size, 77);
}
END_TEST

RVT_MAIN("config", &fields_are_resolved_one_by_one, &no_configuration_is_all_defaults,
    &older_and_newer_callers_are_understood, &impossible_sizes_are_refused)
