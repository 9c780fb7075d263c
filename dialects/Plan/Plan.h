// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect: types and operators.
#ifndef OTF_DIALECTS_PLAN_PLAN_H
#define OTF_DIALECTS_PLAN_PLAN_H

#include "dialects/OTF/OTF.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "dialects/Plan/PlanDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

#endif // OTF_DIALECTS_PLAN_PLAN_H
