/* ck_pr.h - see ck_ring.h beside it. */
