/* peer_upgrade.c - our interop peer as a node: the upgrade of its connections, the agreement on the
 * protocol of its streams, and the cases about both.  What the command line says stands here and
 * is read by every thread once it has been parsed. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL "/reeve/interop/1"
#define AGREE_MS 10000

/* An Ed25519 key, the secret that it follows from, and its id: those of libp2p's specification of TLS. */
static const uint8_t own_seed[32] = {0x7e, 0x08, 0x30, 0x61, 0x7c, 0x4a, 0x7d, 0xe8, 0x39, 0x25,
    0xdf, 0xb2, 0x69, 0x45, 0x56, 0xb1, 0x29, 0x36, 0xc4, 0x77, 0xa0, 0xe1, 0xfe, 0xb2, 0xe1, 0x48,
    0xec, 0x9d, 0xa6, 0x0f, 0xee, 0x7d};
static const uint8_t own_key[32] = {0x1e, 0xd1, 0xe8, 0xfa, 0xe2, 0xc4, 0xa1, 0x44, 0xb8, 0xbe,
    0x8f, 0xd4, 0xb4, 0x7b, 0xf3, 0xd3, 0xb3, 0x4b, 0x87, 0x1c, 0x3c, 0xac, 0xf6, 0x01, 0x0f, 0x0e,
    0x42, 0xd4, 0x74, 0xfc, 0xe2, 0x7e};
static const char own_id[] = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq";

static reeve_reason_t why;
static reeve_upgrade_t up = {
    .size = sizeof(up), .security = REEVE_PLAINTEXT, .key = own_key, .why = &why};
static int upgrades, negotiates, lazy;

static void
muxers(const char *names)
{
	unsigned n = 0;
	size_t len;

	for (; *names != '\0'; names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		peer_check(n < 4 && len == 5, "--muxers needs names of multiplexers");
		if (strncmp(names, "yamux", len) == 0)
			up.muxers[n++] = REEVE_YAMUX;
		else if (strncmp(names, "mplex", len) == 0)
			up.muxers[n++] = REEVE_MPLEX;
		else
			peer_check(0, "--muxers knows yamux and mplex");
	}
}

/* "none", "plaintext", "noise", or the name on the wire of the last two. */
static void
security(const char *name)
{
	reeve_key_t *key;
	int rc;

	up.key = NULL;
	if (strcmp(name, "none") == 0) {
		up.security = REEVE_SECURITY_NONE;
	} else if (strcmp(name, "noise") == 0 || strcmp(name, "/noise") == 0) {
		rc = reeve_key_from_seed(&key, own_seed);
		if (rc == REEVE_ENOTSUP)
			peer_absent("built without Noise");
		peer_must(rc, "key");
		up.security = REEVE_NOISE;
		up.identity = key; /* to the end of the process */
	} else {
		peer_check(strcmp(name, "plaintext") == 0 || strcmp(name, "/plaintext/2.0.0") == 0,
		    "--security knows none, plaintext and noise");
		up.security = REEVE_PLAINTEXT;
		up.key = own_key;
	}
}

int
peer_upgrade_flag(struct peer_options *o, const char *name)
{
	if (strcmp(name, "--upgrade") == 0)
		upgrades = 1;
	else if (strcmp(name, "--no-security") == 0)
		security("none");
	else if (strcmp(name, "--noise") == 0)
		security("noise");
	else if (strcmp(name, "--negotiate") == 0)
		negotiates = 1;
	else if (strcmp(name, "--lazy") == 0)
		lazy = 1;
	else
		return 0;
	o->cfg.upgrade = upgrades ? &up : NULL;
	return 1;
}

int
peer_upgrade_option(const char *name, const char *value)
{
	if (strcmp(name, "--muxers") == 0)
		muxers(value);
	else if (strcmp(name, "--expect") == 0)
		up.expect = value;
	else if (strcmp(name, "--security") == 0)
		security(value);
	else
		return 0;
	return 1;
}

/* What a server has to say of connections that could not begin. */
static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	(void)ctx;
	(void)level;
	if (strncmp(id, "REEVE-UP-", 9) != 0 || strcmp(id, "REEVE-UP-PLAINTEXT") == 0)
		return;
	printf("failed %s: %s\n", id, text);
	fflush(stdout);
}

void
peer_upgrade_logs(reeve_rt_cfg_t *cfg)
{
	if (upgrades)
		cfg->log = on_log;
}

void
peer_upgrade_announce(void)
{
	if (upgrades)
		printf("id %s\n", own_id);
}

void
peer_dialed(int rc)
{
	char text[80];

	snprintf(text, sizeof(text), "dial%s%s", upgrades && rc < 0 ? ", " : "",
	    upgrades && rc < 0 && why.id != NULL ? why.id : "");
	peer_must(rc, text);
}

int
peer_agree(reeve_stream_t *s, int how, const char *name)
{
	if (!negotiates)
		return 0;
	return reeve_negotiate(
	    s, how == REEVE_DIALER && lazy ? how | REEVE_LAZY : how, &name, 1, AGREE_MS);
}

int
peer_agree_default(reeve_stream_t *s, int how)
{
	int rc = peer_agree(s, how, PROTOCOL);

	if (rc == 0 && negotiates)
		peer_check(
		    strcmp(reeve_stream_proto(s), PROTOCOL) == 0, "another name was agreed on");
	return rc;
}

/* Both ids and the multiplexer, as this side knows them. */
static int
facts(reeve_ctl_t *k, int own_first, char out[256])
{
	char peer[80];
	int rc = reeve_peer_id(k, peer, sizeof(peer));

	if (rc < 0)
		return rc;
	return snprintf(out, 256, "%s %s %s", own_first ? own_id : peer, own_first ? peer : own_id,
	    reeve_proto(k) == REEVE_MPLEX ? "/mplex/6.7.0" : "/yamux/1.0.0");
}

int
peer_identify(reeve_stream_t *s)
{
	char text[256];
	uint64_t rest;
	int rc = peer_drain(s, NULL, &rest);

	if (rc == 0)
		rc = facts(reeve_stream_ctl(s), 1, text);
	return rc < 0 ? rc : peer_write(s, text, (size_t)rc);
}

void
peer_agreed(struct peer_link *l, const uint64_t *numbers, char *out)
{
	char want[256], peer[80], got[256] = "";
	reeve_stream_t *s;
	reeve_ssize n;
	size_t have = 0;

	(void)numbers;
	peer_must(facts(l->k, 0, want), "peer id");
	s = peer_start(l->k, PEER_IDENTIFY, NULL, 0);
	peer_must(reeve_shut(s), "shut");
	while ((n = reeve_read(s, got + have, sizeof(got) - 1 - have)) > 0)
		have += (size_t)n;
	peer_must((int)n, "read");
	reeve_close(s);
	peer_check(strcmp(got, want) == 0, got);
	peer_must(reeve_peer_id(l->k, peer, sizeof(peer)), "peer id");
	snprintf(out, OUT_SIZE, "\"id\":\"%s\",\"peer_id\":\"%s\",\"muxer\":\"%s\"", own_id, peer,
	    strrchr(got, ' ') + 1);
}

void
peer_unknown(struct peer_link *l, const uint64_t *numbers, char *out)
{
	reeve_stream_t *other = peer_start(l->k, PEER_ECHO, "x", 1), *s;
	uint8_t byte;
	int rc;

	(void)numbers;
	peer_must(reeve_open(l->k, &s, CALL_MS), "open");
	reeve_deadline(s, REEVE_RD | REEVE_WR, CALL_MS);
	rc = peer_agree(s, REEVE_DIALER, "/reeve/unknown/1");
	if (rc == 0 && lazy) { /* what is written goes nowhere */
		peer_must(peer_write(s, "x", 1), "write");
		rc = (int)reeve_read(s, &byte, 1);
	}
	peer_check(rc == REEVE_ENOPROTO, reeve_errname(rc));
	peer_check(reeve_read(s, &byte, 1) == REEVE_ENOPROTO, "a later read answers otherwise");
	reeve_close(s);
	peer_must(peer_write(other, "y", 1), "write");
	peer_must(reeve_shut(other), "shut");
	peer_expect(other, "xy", 2, "another stream suffered");
	peer_echo(l->k, (const uint8_t *)"alive", 5);
	snprintf(out, OUT_SIZE, "\"failure\":\"%s\"", reeve_errname(rc));
}
