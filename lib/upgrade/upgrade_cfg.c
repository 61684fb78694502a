/* upgrade_cfg.c - what an application may ask for before there are streams: checked, and copied.  See handshake.h. */
#include <config.h>

#include <string.h>

#include "lib/check.h"
#include "lib/upgrade/handshake.h"

#define TIMEOUT_MS  10000
#define UPGRADE_MIN offsetof(reeve_upgrade_t, identity) /* the first version of it */
#define UPGRADE_MAX 4096u

#ifndef HAVE_NOISE
#define HAVE_NOISE 0
#endif

/* As far as the caller's header knew it. */
static int
known(reeve_upgrade_t *out, const reeve_upgrade_t *up)
{
	const unsigned char *bytes = (const unsigned char *)up;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	REEVE_REQUIRE(up->size >= UPGRADE_MIN && up->size <= UPGRADE_MAX, REEVE_EINVAL);
	for (i = sizeof(*out); i < up->size; i++)
		REEVE_REQUIRE(bytes[i] == 0, REEVE_EINVAL);
	memcpy(out, up, up->size < sizeof(*out) ? up->size : sizeof(*out));
	out->size = sizeof(*out);
	return 0;
}

static int
resolve_identity(struct rv_upgrade_cfg *out, const reeve_upgrade_t *up)
{
	const uint8_t *key = up->key;

	out->identity = (struct reeve_key *)(uintptr_t)up->identity;
	if (key == NULL && up->identity != NULL)
		key = rv_key_public(up->identity);
	REEVE_REQUIRE(
	    key != NULL && (up->security != REEVE_NOISE || up->identity != NULL), REEVE_EINVAL);
	out->key.type = RV_KEY_ED25519;
	out->key.len = 32;
	memcpy(out->key.v, key, 32);
	return up->expect == NULL ? 0 : rv_peer_id_parse(&out->expect, up->expect);
}

int
rv_upgrade_resolve(struct rv_upgrade_cfg *out, const reeve_upgrade_t *given)
{
	reeve_upgrade_t copy, *up = &copy;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	REEVE_REQUIRE(known(up, given) == 0 && up->security <= REEVE_NOISE, REEVE_EINVAL);
	REEVE_REQUIRE(up->security != REEVE_NOISE || HAVE_NOISE, REEVE_ENOTSUP);
	out->security = up->security;
	out->timeout_ms = up->timeout_ms == 0 ? TIMEOUT_MS : up->timeout_ms;
	for (i = 0; i < RV_MUXERS && up->muxers[i] != 0; i++) {
		REEVE_REQUIRE(
		    up->muxers[i] == REEVE_YAMUX || up->muxers[i] == REEVE_MPLEX, REEVE_EINVAL);
		out->muxers[i] = up->muxers[i];
	}
	out->nmuxers = i;
	if (i == 0) {
		out->muxers[0] = REEVE_YAMUX;
		out->muxers[1] = REEVE_MPLEX;
		out->nmuxers = 2;
	}
	if (out->security == REEVE_SECURITY_NONE)
		return up->key == NULL && up->expect == NULL ? 0 : REEVE_EINVAL;
	return resolve_identity(out, up);
}

void
rv_upgrade_copy(struct rv_upgrade_copy *to, reeve_cfg_t *cfg)
{
	if (cfg->upgrade == NULL)
		return;
	(void)known(&to->up, cfg->upgrade); /* what is refused in it is refused again */
	if (to->up.key != NULL) {
		memcpy(to->key, to->up.key, sizeof(to->key));
		to->up.key = to->key;
	}
	if (to->up.expect != NULL) {
		/* Longer ones are no ids: what is cut is refused too. */
		strncpy(to->expect, to->up.expect, sizeof(to->expect) - 1);
		to->expect[sizeof(to->expect) - 1] = '\0';
		to->up.expect = to->expect;
	}
	if (to->up.identity != NULL)
		rv_key_ref((struct reeve_key *)(uintptr_t)to->up.identity);
	cfg->upgrade = &to->up;
}

void
rv_upgrade_release(struct rv_upgrade_copy *copy)
{
	rv_key_unref((struct reeve_key *)(uintptr_t)copy->up.identity);
	copy->up.identity = NULL;
}
