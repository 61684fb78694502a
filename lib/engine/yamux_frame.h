/* yamux_frame.h - the 12-byte header: version, type, flags, stream id, length; big-endian. */
#ifndef REEVE_LIB_ENGINE_YAMUX_FRAME_H
#define REEVE_LIB_ENGINE_YAMUX_FRAME_H

#include "lib/bytes.h"

#define RV_YHDR 12u

enum rv_ytype { RV_Y_DATA, RV_Y_WINDOW, RV_Y_PING, RV_Y_GOAWAY, RV_Y_NTYPES };

#define RV_YF_SYN 0x1u
#define RV_YF_ACK 0x2u
#define RV_YF_FIN 0x4u
#define RV_YF_RST 0x8u

/* Codes of a go-away. */
#define RV_YGO_NORMAL   0u
#define RV_YGO_PROTO    1u
#define RV_YGO_INTERNAL 2u

struct rv_yhdr {
	uint8_t version, type;
	uint16_t flags;
	uint32_t id, len;
};

/* Any 12 bytes are a header; nothing is checked here. */
static inline void
rv_yhdr_get(struct rv_yhdr *h, const uint8_t *p)
{
	h->version = p[0];
	h->type = p[1];
	h->flags = rv_load_be16(p + 2);
	h->id = rv_load_be32(p + 4);
	h->len = rv_load_be32(p + 8);
}

static inline void
rv_yhdr_put(uint8_t *p, const struct rv_yhdr *h)
{
	rv_store_be32(p, (uint32_t)h->version << 24 | (uint32_t)h->type << 16 | h->flags);
	rv_store_be32(p + 4, h->id);
	rv_store_be32(p + 8, h->len);
}

/* "DATA", "WINDOW", "PING", "GOAWAY" or "?", a static string. */
const char *rv_ytype_name(unsigned type);

#endif
