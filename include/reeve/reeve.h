/* reeve.h - everything: thousands of back-pressured streams over one byte pipe. */
#ifndef REEVE_H
#define REEVE_H

#include <reeve/actor.h>
#include <reeve/buf.h>
#include <reeve/conn.h>
#include <reeve/ctl.h>
#include <reeve/error.h>
#include <reeve/export.h>
#include <reeve/key.h>
#include <reeve/listen.h>
#include <reeve/node.h>
#include <reeve/notif.h>
#include <reeve/op.h>
#include <reeve/request.h>
#include <reeve/rt.h>
#include <reeve/stats.h>
#include <reeve/stream.h>
#include <reeve/version.h>

#endif
