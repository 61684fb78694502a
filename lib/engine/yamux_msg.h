/* yamux_msg.h - why a yamux connection ends: stable message ids with their texts. */
#ifndef REEVE_LIB_ENGINE_YAMUX_MSG_H
#define REEVE_LIB_ENGINE_YAMUX_MSG_H

/* X(name, id, error, go-away code or -1 for none, text) */
#define RV_YMSG_MAP(X)                                                                            \
	X(VERSION, "0001", EPROTO, 1, "the version of a frame is not 0")                          \
	X(TYPE, "0002", EPROTO, 1, "the type of a frame is unknown")                              \
	X(ID0, "0003", EPROTO, 1, "a frame of a stream has the id of the session")                \
	X(PARITY, "0004", EPROTO, 1, "the peer opened a stream with an id of ours: two dialers?") \
	X(DUPLICATE, "0005", EPROTO, 1, "the peer opened a stream that is open")                  \
	X(BODY0, "0006", EPROTO, 1, "the first frame of a stream is larger than its window")      \
	X(OVERRUN, "0007", EPROTO, 1, "a frame is larger than the credit of its stream")          \
	X(CREDIT, "0008", EPROTO, 1, "credit above 2^32 - 1")                                     \
	X(REFUSALS, "0009", ELIMIT, 2, "too many refused streams whose resets were not taken")    \
	X(REFUSE_MEM, "0010", ENOMEM, 2, "no memory to refuse a stream")                          \
	X(CHURN, "0011", ELIMIT, 2, "too many streams reset before they were accepted")           \
	X(DEAD, "0012", EDEAD, -1, "no sign of life from the peer")                               \
	X(TRUNCATED, "0013", ETRUNC, -1, "the connection ended inside a frame")                   \
	X(GOAWAY, "0014", EGOAWAY, -1, "the peer ended the connection with a code")

enum rv_ymsg {
#define X(name, id, rc, code, text) RV_YMSG_##name,
	RV_YMSG_MAP(X)
#undef X
	    RV_YMSG_COUNT
};

struct rv_ymsg_text {
	const char *id, *text;
	int rc, code;
};
extern const struct rv_ymsg_text rv_ymsg_text[RV_YMSG_COUNT];

#endif
