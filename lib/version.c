/* version.c - the version in use at run time, for programs that link us dynamically. */
#include <config.h>

#include <reeve/error.h>
#include <reeve/version.h>

const char *
reeve_version(void)
{
	return REEVE_VERSION;
}
