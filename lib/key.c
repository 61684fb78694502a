/* key.c - identities, in memory and in files.  See key.h.
 *
 * Secrets are in the object and, for as long as a call lasts, in buffers that it overwrites. */
#include <config.h>

#include "lib/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/upgrade/identity.h"
#include "lib/upgrade/noise_crypto.h"
#include "queues/ref.h"

#define HEAD     4u                      /* of the encoding */
#define FILE_LEN (HEAD + 2 * RV_KEY_LEN) /* type and data: seed, public half */
#define OLD_DATA (3 * RV_KEY_LEN)        /* an older form has the public half twice */
#define READ_MAX 256u
#define PATH_LEN 4096u

struct reeve_key {
	struct rvq_ref refs;
	uint8_t seed[RV_KEY_LEN], pub[RV_KEY_LEN];
	struct evp_pkey_st *pkey;
};

int
reeve_key_from_seed(reeve_key_t **out, const uint8_t seed[32])
{
	struct reeve_key *k;
	int rc;

	REEVE_REQUIRE(out != NULL && seed != NULL, REEVE_EINVAL);
	k = calloc(1, sizeof(*k));
	REEVE_REQUIRE(k != NULL, REEVE_ENOMEM);
	rvq_ref_init(&k->refs, 1);
	memcpy(k->seed, seed, sizeof(k->seed));
	rc = rv_ed25519_from_seed(&k->pkey, k->pub, k->seed);
	if (rc != 0)
		rv_key_unref(k);
	else
		*out = k;
	return rc;
}

int
reeve_key_generate(reeve_key_t **out)
{
	uint8_t seed[RV_KEY_LEN];
	int rc;

	REEVE_REQUIRE(out != NULL, REEVE_EINVAL);
	rc = rv_random(seed, sizeof(seed));
	if (rc == 0)
		rc = reeve_key_from_seed(out, seed);
	rv_wipe(seed, sizeof(seed));
	return rc;
}

int
reeve_key_from_bytes(reeve_key_t **out, const void *p, size_t n)
{
	struct rv_bytes data;
	const uint8_t *pub;
	reeve_key_t *k;
	uint32_t type = 0;
	int rc;

	REEVE_REQUIRE(out != NULL && p != NULL, REEVE_EINVAL);
	rc = rv_pubkey_fields(&type, &data, p, n);
	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(type == RV_KEY_ED25519, REEVE_ENOTSUP);
	REEVE_REQUIRE(data.n == 2 * RV_KEY_LEN || data.n == OLD_DATA, REEVE_EPROTO);
	rc = reeve_key_from_seed(&k, data.p);
	REEVE_REQUIRE(rc == 0, rc);
	for (pub = data.p + RV_KEY_LEN; pub < data.p + data.n; pub += RV_KEY_LEN) {
		if (memcmp(pub, k->pub, RV_KEY_LEN) != 0) {
			rv_key_unref(k);
			return REEVE_EPROTO;
		}
	}
	*out = k;
	return 0;
}

int
reeve_key_load(reeve_key_t **out, const char *path)
{
	uint8_t b[READ_MAX];
	size_t n = 0;
	ssize_t got = 1;
	int fd, rc;

	REEVE_REQUIRE(out != NULL && path != NULL, REEVE_EINVAL);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	REEVE_REQUIRE(fd >= 0, REEVE_ESYS_BASE - errno);
	while (n < sizeof(b) && got > 0) {
		got = read(fd, b + n, sizeof(b) - n);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			n += (size_t)got;
	}
	rc = got < 0 ? REEVE_ESYS_BASE - errno : n == sizeof(b) ? REEVE_EPROTO : 0;
	close(fd);
	if (rc == 0)
		rc = reeve_key_from_bytes(out, b, n);
	rv_wipe(b, sizeof(b));
	return rc;
}

static int
write_all(int fd, const uint8_t *p, size_t n)
{
	ssize_t got;

	while (n > 0) {
		got = write(fd, p, n);
		if (got < 0 && errno != EINTR)
			return REEVE_ESYS_BASE - errno;
		if (got > 0) {
			p += got;
			n -= (size_t)got;
		}
	}
	return fsync(fd) == 0 ? 0 : REEVE_ESYS_BASE - errno;
}

/* The name becomes durable with its folder.  Overwrites path. */
static int
sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	int fd, rc;

	if (slash != NULL)
		slash[slash == path] = '\0';
	fd = open(slash == NULL ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REEVE_REQUIRE(fd >= 0, REEVE_ESYS_BASE - errno);
	rc = fsync(fd) == 0 || errno == EINVAL ? 0 : REEVE_ESYS_BASE - errno;
	close(fd);
	return rc;
}

/* May what is at path be replaced? */
static int
replaceable(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : REEVE_ESYS_BASE - errno;
	return S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600 ? 0 : REEVE_ESYS_BASE - EEXIST;
}

int
reeve_key_save(const reeve_key_t *k, const char *path)
{
	uint8_t b[FILE_LEN] = {1 << 3, RV_KEY_ED25519, 2 << 3 | 2, 2 * RV_KEY_LEN};
	char tmp[PATH_LEN];
	int fd, n, rc;

	REEVE_REQUIRE(k != NULL && path != NULL && path[0] != '\0', REEVE_EINVAL);
	n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path);
	REEVE_REQUIRE(n > 0 && (size_t)n < sizeof(tmp), REEVE_ESYS_BASE - ENAMETOOLONG);
	rc = replaceable(path);
	REEVE_REQUIRE(rc == 0, rc);
	fd = mkostemp(tmp, O_CLOEXEC); /* mode 0600 */
	REEVE_REQUIRE(fd >= 0, REEVE_ESYS_BASE - errno);
	memcpy(b + HEAD, k->seed, RV_KEY_LEN);
	memcpy(b + HEAD + RV_KEY_LEN, k->pub, RV_KEY_LEN);
	rc = write_all(fd, b, sizeof(b));
	rv_wipe(b, sizeof(b));
	if (close(fd) < 0 && rc == 0)
		rc = REEVE_ESYS_BASE - errno;
	if (rc == 0 && rename(tmp, path) < 0)
		rc = REEVE_ESYS_BASE - errno;
	if (rc != 0) {
		(void)unlink(tmp);
		return rc;
	}
	return sync_folder(tmp);
}

const uint8_t *
reeve_key_public(const reeve_key_t *k)
{
	return k == NULL ? NULL : k->pub;
}

int
reeve_key_peer_id(const reeve_key_t *k, char *out, size_t n)
{
	struct rv_pubkey pub = {.type = RV_KEY_ED25519, .len = RV_KEY_LEN};
	char text[RV_PEER_TEXT];
	struct rv_peer_id id;
	size_t len;

	REEVE_REQUIRE(k != NULL && out != NULL, REEVE_EINVAL);
	memcpy(pub.v, k->pub, RV_KEY_LEN);
	rv_peer_id_of(&id, &pub);
	len = rv_peer_id_text(&id, text);
	REEVE_REQUIRE(len < n, REEVE_EINVAL);
	memcpy(out, text, len + 1);
	return (int)len;
}

void
reeve_key_free(reeve_key_t *k)
{
	rv_key_unref(k);
}

void
rv_key_ref(struct reeve_key *k)
{
	rvq_ref_get(&k->refs);
}

void
rv_key_unref(struct reeve_key *k)
{
	if (k == NULL || !rvq_ref_put(&k->refs))
		return;
	rv_ed25519_destroy(k->pkey);
	rv_wipe(k, sizeof(*k));
	free(k);
}

const uint8_t *
rv_key_public(const struct reeve_key *k)
{
	return k->pub;
}

int
rv_key_sign(const struct reeve_key *k, uint8_t *sig, const void *msg, size_t n)
{
	return rv_ed25519_sign(k->pkey, sig, msg, n);
}
