/* mux.c - see mux.h. */
#include <config.h>

#include "tools/mux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool
mux_parse(struct mux *m, const char *list)
{
	size_t len;

	for (m->n = 0;; list += len + 1) {
		len = strcspn(list, ",");
		if (m->n == MUX_MOST)
			return false;
		if (len == 5 && memcmp(list, "yamux", 5) == 0)
			m->set[m->n++] = REEVE_YAMUX;
		else if (len == 5 && memcmp(list, "mplex", 5) == 0)
			m->set[m->n++] = REEVE_MPLEX;
		else
			return false;
		if (list[len] == '\0')
			return true;
	}
}

/* Plaintext proves nothing, so any bytes are a key. */
static int
random_key(uint8_t key[32])
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return REEVE_ESYS_BASE - errno;
	if (read(fd, key, 32) != 32)
		rc = REEVE_ESYS_BASE - EIO;
	close(fd);
	return rc;
}

const char *
mux_agreed(const struct mux *m)
{
	return m->noise ? "noise" : m->plaintext ? "plaintext" : NULL;
}

const char *
mux_misuse(const struct mux *m)
{
	if (m->noise && m->plaintext)
		return "--noise or --plaintext, not both";
	if (m->n > 1 && mux_agreed(m) == NULL)
		return "--mux with several names needs --noise or --plaintext";
	if (m->key_file != NULL && !m->noise)
		return "--key needs --noise";
	if (m->peer != NULL && mux_agreed(m) == NULL)
		return "--peer needs --noise";
	return NULL;
}

/* Ours: of the file, which is made if there is none, or of this run only. */
static int
own_key(struct mux *m)
{
	int rc;

	if (m->key_file == NULL)
		return reeve_key_generate(&m->identity);
	rc = reeve_key_load(&m->identity, m->key_file);
	if (rc != REEVE_ESYS_BASE - ENOENT)
		return rc;
	rc = reeve_key_generate(&m->identity);
	return rc < 0 ? rc : reeve_key_save(m->identity, m->key_file);
}

int
mux_cfg(struct mux *m, reeve_cfg_t *cfg)
{
	int rc;

	reeve_cfg_init(cfg);
	m->why.size = sizeof(m->why);
	m->why.id = "";
	if (mux_agreed(m) == NULL) {
		cfg->proto = m->set[0];
		return 0;
	}
	rc = m->noise ? own_key(m) : random_key(m->key);
	m->upgrade = (reeve_upgrade_t){.size = sizeof(m->upgrade),
	    .security = m->noise ? REEVE_NOISE : REEVE_PLAINTEXT,
	    .key = m->noise ? NULL : m->key,
	    .identity = m->identity,
	    .expect = m->peer,
	    .why = &m->why};
	memcpy(m->upgrade.muxers, m->set, sizeof(m->set));
	cfg->upgrade = &m->upgrade;
	return rc;
}

void
mux_end(struct mux *m)
{
	reeve_key_free(m->identity);
	m->identity = NULL;
}
