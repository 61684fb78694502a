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

int
mux_cfg(struct mux *m, reeve_cfg_t *cfg)
{
	reeve_cfg_init(cfg);
	m->why.size = sizeof(m->why);
	m->why.id = "";
	if (!m->plaintext) {
		cfg->proto = m->set[0];
		return m->n > 1 ? REEVE_EINVAL : 0;
	}
	m->upgrade = (reeve_upgrade_t){
	    .size = sizeof(m->upgrade), .security = REEVE_PLAINTEXT, .key = m->key, .why = &m->why};
	memcpy(m->upgrade.muxers, m->set, sizeof(m->set));
	cfg->upgrade = &m->upgrade;
	return random_key(m->key);
}
