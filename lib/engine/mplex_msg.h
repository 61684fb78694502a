/* mplex_msg.h - why an mplex connection or stream ends: stable message ids with their texts. */
#ifndef REEVE_LIB_ENGINE_MPLEX_MSG_H
#define REEVE_LIB_ENGINE_MPLEX_MSG_H

/* X(name, id, error, text) */
#define RV_MPMSG_MAP(X)                                                                     \
	X(VARINT, "0001", EPROTO, "a varint of a header is malformed")                      \
	X(FLAG, "0002", EPROTO, "the flag of a frame is unknown")                           \
	X(DUPLICATE, "0003", EPROTO, "the peer opened a stream that is open")               \
	X(LENGTH, "0004", EPROTO, "a frame is larger than 1 MiB")                           \
	X(REFUSALS, "0005", ELIMIT, "too many refused streams whose resets were not taken") \
	X(REFUSE_MEM, "0006", ENOMEM, "no memory to refuse a stream")                       \
	X(CHURN, "0007", ELIMIT, "too many streams reset before they were accepted")        \
	X(TRUNCATED, "0008", ETRUNC, "the connection ended inside a frame")                 \
	X(SLOW, "0009", ELIMIT, "a stream was reset because its reader held up the others")

enum rv_mpmsg {
#define X(name, id, rc, text) RV_MPMSG_##name,
	RV_MPMSG_MAP(X)
#undef X
	    RV_MPMSG_COUNT
};

struct rv_mpmsg_text {
	const char *id, *text;
	int rc;
};
extern const struct rv_mpmsg_text rv_mpmsg_text[RV_MPMSG_COUNT];

#endif
