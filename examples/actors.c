/* actors.c - an actor of the application: its state needs no lock.
 *
 * usage: actors [--mux yamux|mplex]     prints what came back and exits with 0
 *
 * Three threads post lines to one actor, the scribe.  The scribe writes each line to a stream and reads the echo; both
 * completions are messages to it as well, because op.actor names it.  So all that touches struct scribe runs one
 * message at a time, and near the stream: on the stream's own worker.  main echoes the other end of the stream. */
#include <reeve/reeve.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define LINES   100 /* of each thread */

/* A line on its way: first a message to the scribe, then the operation that writes it. */
struct line {
	reeve_msg_t msg; /* first: the message is the line */
	reeve_op_t write;
	char text[32];
};

struct scribe {
	reeve_rt_t *rt;
	reeve_stream_t *stream;
	reeve_op_t read;
	int lines; /* taken so far */
	size_t bytes_out, bytes_in;
	int rc;     /* the first error */
	sem_t over; /* the last message was handled: main may look */
};

static void
read_more(reeve_actor_t *self, struct scribe *sc)
{
	reeve_op_init(&sc->read, NULL, NULL);
	sc->read.actor = self;
	reeve_read_async(sc->stream, &sc->read);
}

static void
write_line(reeve_actor_t *self, struct scribe *sc, struct line *line)
{
	size_t n = strlen(line->text);
	reeve_buf_t *b = reeve_buf_alloc(sc->rt, n);

	if (b != NULL)
		memcpy(reeve_buf_mut(b), line->text, n);
	reeve_op_init(&line->write, NULL, line);
	line->write.actor = self;
	reeve_write_async(
	    sc->stream, b, &line->write); /* without a buffer: completes with an error */
	if (++sc->lines == THREADS * LINES)
		reeve_shut(sc->stream); /* behind what was written: the echo ends too */
}

static void
line_written(struct scribe *sc, reeve_op_t *op)
{
	if (op->res > 0)
		sc->bytes_out += (size_t)op->res;
	else if (sc->rc == 0)
		sc->rc = (int)op->res;
	free(op->arg);
}

static void
echo_read(reeve_actor_t *self, struct scribe *sc)
{
	if (sc->read.res > 0) {
		sc->bytes_in += (size_t)sc->read.res;
		reeve_buf_unref(sc->read.buf);
		read_more(self, sc);
		return;
	}
	if (sc->rc == 0)
		sc->rc = (int)sc->read.res;
	reeve_actor_stop(self); /* one more message comes: NULL */
}

/* Every message of the scribe. */
static void
scribe_on(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct scribe *sc = arg;
	reeve_op_t *op = reeve_msg_op(msg);

	if (msg == NULL)
		sem_post(&sc->over);
	else if (op == NULL)
		write_line(self, sc, (struct line *)msg);
	else if (op == &sc->read)
		echo_read(self, sc);
	else
		line_written(sc, op);
}

static void *
author(void *arg)
{
	reeve_actor_t *scribe = arg;

	for (int i = 0; i < LINES; i++) {
		struct line *line = malloc(sizeof(*line));

		if (line == NULL)
			abort();
		snprintf(line->text, sizeof(line->text), "line %d\n", i);
		reeve_actor_post(
		    scribe, &line->msg); /* never blocks; the line is the scribe's now */
	}
	return NULL;
}

/* The other end of the stream, in blocking style. */
static void
echo(reeve_conn_t *c)
{
	reeve_stream_t *s;
	reeve_buf_t *b;

	if (reeve_accept(reeve_conn_ctl(c), &s, 5000) < 0)
		return;
	while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
		;
	reeve_close(s);
}

static int
run(struct scribe *sc, reeve_conn_t *pair[2])
{
	pthread_t threads[THREADS];
	reeve_actor_t *scribe;
	int rc = reeve_open(reeve_conn_ctl(pair[0]), &sc->stream, 5000);

	if (rc < 0)
		return rc;
	rc = reeve_actor_spawn(&scribe, sc->rt, scribe_on, sc, reeve_stream_ctl(sc->stream));
	if (rc < 0)
		return rc;
	reeve_deadline(sc->stream, REEVE_RD | REEVE_WR, 10000);
	read_more(scribe, sc); /* before anybody posts: nothing else touches sc yet */
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, author, scribe) != 0)
			abort();
	echo(pair[1]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (sem_wait(&sc->over) < 0)
		;
	reeve_actor_unref(scribe);
	reeve_close(sc->stream);
	return sc->rc;
}

/* --mux NAME: which protocol carries the streams.  Answers how many arguments it took. */
static int
take_mux(reeve_cfg_t *cfg, int argc, char **argv)
{
	reeve_cfg_init(cfg);
	if (argc < 3 || strcmp(argv[1], "--mux") != 0)
		return 0;
	if (strcmp(argv[2], "mplex") == 0)
		cfg->proto = REEVE_MPLEX;
	else if (strcmp(argv[2], "yamux") != 0) /* the default */
		return -1;
	return 2;
}

int
main(int argc, char **argv)
{
	struct scribe sc = {.rc = 0};
	reeve_conn_t *pair[2];
	reeve_cfg_t cfg;
	int rc;

	if (take_mux(&cfg, argc, argv) != argc - 1) {
		fprintf(stderr, "usage: actors [--mux yamux|mplex]\n");
		return 2;
	}
	rc = reeve_rt_create(&sc.rt, NULL);
	if (rc == 0) {
		sem_init(&sc.over, 0, 0);
		rc = reeve_conn_pair(pair, sc.rt, &cfg);
		if (rc == 0) {
			rc = run(&sc, pair);
			reeve_conn_destroy(pair[0]);
			reeve_conn_destroy(pair[1]);
		}
		reeve_rt_destroy(sc.rt);
	}
	if (rc < 0)
		fprintf(stderr, "actors: %s (%s)\n", reeve_strerror(rc), reeve_errname(rc));
	else
		printf("%d lines, %zu bytes out, %zu bytes back\n", sc.lines, sc.bytes_out,
		    sc.bytes_in);
	return rc < 0 || sc.bytes_in != sc.bytes_out;
}
