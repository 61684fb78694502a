/* varint.h - unsigned LEB128 as multiformats uses it (unsigned-varint specification): seven bits
 * a byte, least significant first, the shortest form only.  Pure functions. */
#ifndef REEVE_LIB_VARINT_H
#define REEVE_LIB_VARINT_H

#include <stddef.h>
#include <stdint.h>
#include <reeve/error.h>

#define RV_VARINT_STRICT 9  /* bytes: the specification's limit, 63 bits */
#define RV_VARINT_MAX    10 /* bytes: everything 64 bits can say */

/* Read one from n bytes that takes at most max bytes (1 to RV_VARINT_MAX).  Bytes used (*v is
 * written); REEVE_EAGAIN: all n are the beginning of one; REEVE_EPROTO: too long, too large or
 * not the shortest form, told as soon as the bytes show it. */
int rv_varint_get(uint64_t *v, const uint8_t *p, size_t n, unsigned max);
/* Write v, at most RV_VARINT_MAX bytes.  Bytes written. */
unsigned rv_varint_put(uint8_t *p, uint64_t v);
/* Bytes that v takes: 1 to RV_VARINT_MAX. */
unsigned rv_varint_size(uint64_t v);

#endif
