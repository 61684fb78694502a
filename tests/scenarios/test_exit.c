/* Scenario 62: processes that end in the middle of everything. */
#include <config.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/base.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"
#include "tests/scenarios/pace.h"

#define STATUS 7

/* A file of the build, relative to the folder of this program. */
static void
beside(char *out, size_t n, const char *file)
{
	char self[512];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(len, 0);
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	ck_assert_int_lt(snprintf(out, n, "%s/%s", self, file), (int)n);
}

/* Run it; it ends in time with its status, having said nothing. */
static void
run_child(const char *how, const char *arg)
{
	uint64_t until = rvt_now_ms() + (uint64_t)rvt_slow(2000);
	char path[600], said[200] = "";
	int v[2], status = 0;
	ssize_t n;
	pid_t pid, got = 0;

	beside(path, sizeof(path), "exit_child");
	rvt_pipe_pair(v);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(v[1], 1);
		dup2(v[1], 2);
		execl(path, path, how, arg, (char *)NULL);
		_exit(127);
	}
	close(v[1]);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && rvt_now_ms() < until)
		rvt_pace_us(2000);
	if (got == 0) {
		kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		ck_abort_msg("%s: the process does not end", how);
	}
	n = read(v[0], said, sizeof(said) - 1);
	close(v[0]);
	said[n > 0 ? n : 0] = '\0';
	ck_assert_msg(
	    WIFEXITED(status), "%s: killed by signal %d: %s", how, WTERMSIG(status), said);
	ck_assert_msg(
	    WEXITSTATUS(status) == STATUS, "%s: status %d: %s", how, WEXITSTATUS(status), said);
	ck_assert_str_eq(said, "");
}

START_TEST(scenario_62_a_process_ends_with_everything_alive)
{
	static const char *const how[] = {"atexit", "return", "callback", "handler", "quick"};
	struct rvt_base base = rvt_base();

	if (RVT_TSAN && strcmp(how[_i], "quick") == 0)
		return; /* the sanitizer counts its threads wrong when a process ends so */
	run_child(how[_i], NULL);
	rvt_base_check(&base);
}
END_TEST

START_TEST(scenario_62_the_library_may_be_unloaded)
{
	struct rvt_base base = rvt_base();
	char path[600];

	beside(path, sizeof(path), "../../lib/.libs/libreeve.so");
	if (access(path, R_OK) != 0)
		return; /* no shared library in this build */
	run_child("dlclose", path);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: exit", {&scenario_62_a_process_ends_with_everything_alive, 5},
    {&scenario_62_the_library_may_be_unloaded, 0})
