/* error.c - texts and names of error codes.  Any thread, signal handlers too: static strings
 * only, so the names of system errors are a table of our own (strerrorname_np would leave the
 * prefix to be put in front at run time). */
#include <config.h>

#include <reeve/error.h>

#include <errno.h>
#include <string.h>

/* Linux's, less those of streams hardware, keys and file systems that no call here can answer. */
/* clang-format off */
#define RV_ERRNO_MAP(X) \
	X(EPERM) X(ENOENT) X(ESRCH) X(EINTR) X(EIO) X(ENXIO) X(E2BIG) X(ENOEXEC) X(EBADF) \
	X(ECHILD) X(EAGAIN) X(ENOMEM) X(EACCES) X(EFAULT) X(ENOTBLK) X(EBUSY) X(EEXIST) \
	X(EXDEV) X(ENODEV) X(ENOTDIR) X(EISDIR) X(EINVAL) X(ENFILE) X(EMFILE) X(ENOTTY) \
	X(ETXTBSY) X(EFBIG) X(ENOSPC) X(ESPIPE) X(EROFS) X(EMLINK) X(EPIPE) X(EDOM) X(ERANGE) \
	X(EDEADLK) X(ENAMETOOLONG) X(ENOLCK) X(ENOSYS) X(ENOTEMPTY) X(ELOOP) X(ENOMSG) X(EIDRM) \
	X(ENOSTR) X(ENODATA) X(ETIME) X(ENOSR) X(ENOLINK) X(EPROTO) X(EBADMSG) X(EOVERFLOW) \
	X(EILSEQ) X(EUSERS) X(ENOTSOCK) X(EDESTADDRREQ) X(EMSGSIZE) X(EPROTOTYPE) \
	X(ENOPROTOOPT) X(EPROTONOSUPPORT) X(ESOCKTNOSUPPORT) X(EOPNOTSUPP) X(EPFNOSUPPORT) \
	X(EAFNOSUPPORT) X(EADDRINUSE) X(EADDRNOTAVAIL) X(ENETDOWN) X(ENETUNREACH) X(ENETRESET) \
	X(ECONNABORTED) X(ECONNRESET) X(ENOBUFS) X(EISCONN) X(ENOTCONN) X(ESHUTDOWN) \
	X(ETOOMANYREFS) X(ETIMEDOUT) X(ECONNREFUSED) X(EHOSTDOWN) X(EHOSTUNREACH) X(EALREADY) \
	X(EINPROGRESS) X(ESTALE) X(EDQUOT) X(ECANCELED) X(EOWNERDEAD) X(ENOTRECOVERABLE)
/* clang-format on */

static const char *
sys_name(int e)
{
	switch (e) {
#define X(name)    \
	case name: \
		return "REEVE_ESYS:" #name;
		RV_ERRNO_MAP(X)
#undef X
	default:
		return "REEVE_ESYS";
	}
}

static const char *
sys_text(int e)
{
	const char *text = NULL;

#ifdef HAVE_STRERRORDESC_NP
	text = strerrordesc_np(e);
#endif
	return text != NULL ? text : sys_name(e);
}

const char *
reeve_strerror(int rc)
{
	if (rc >= 0)
		return "no error";
	if (rc < REEVE_ESYS_BASE)
		return sys_text(REEVE_ESYS_BASE - rc);
	switch (rc) {
#define X(name, num, text) \
	case REEVE_##name: \
		return text;
		REEVE_ERR_MAP(X)
#undef X
	default:
		return "unknown error";
	}
}

const char *
reeve_errname(int rc)
{
	if (rc >= 0)
		return "REEVE_OK";
	if (rc < REEVE_ESYS_BASE)
		return sys_name(REEVE_ESYS_BASE - rc);
	switch (rc) {
#define X(name, num, text) \
	case REEVE_##name: \
		return "REEVE_" #name;
		REEVE_ERR_MAP(X)
#undef X
	default:
		return "REEVE_UNKNOWN";
	}
}
