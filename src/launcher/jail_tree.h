// The stages of the jail (jail.h) that build the sandbox's tree of mounts: root, /proc, /dev, the
// caller's mounts, and the covers over what a guest must not see. Each gives 0 or an errno.
#pragma once

#include "launcher/jail.h"

namespace caisson::launcher::tree {

int Private(const JailPlan& plan);
int Disk(const JailPlan& plan);
int Root(const JailPlan& plan);
int Proc(const JailPlan& plan);
int Dev(const JailPlan& plan);
int Writable(const JailPlan& plan);
int Mounts(const JailPlan& plan);
int Masks(const JailPlan& plan);
int ReadOnly(const JailPlan& plan);
int Pivot(const JailPlan& plan);

}  // namespace caisson::launcher::tree
