"""Kernels that only other kernels call are compiled as parts of their callers, and are optimised once.

numba prepares every function for Python: it wraps it, optimises it together with all its callees and generates machine
code. A kernel that only other kernels call needs none of this, and its callees are optimised again at every level above
it. A part is not optimised; its code is only linked with that of the parts that it calls. The kernel that Python calls
is optimised with all its parts at once. The code is equivalent, so results are identical to the bit.

This module replaces passes and the code library of numba's compiler. It leaves out the passes for closures and for
whole-array expressions, which kernels do not contain, and caches what numba looks up about calls (`remembered`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites, NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes

from udcp_solvers.numeric.remembered import cached_calls

# numba is only partly typed; its untyped members are used through these.
_dynfunc: Any = import_module("numba._dynfunc")
_default_passes: Any = DefaultPassBuilder
_register: Any = register_pass


class _Unoptimised(JITCodeLibrary):
    """Code that is linked, but neither optimised as a whole nor compiled to machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@_register(mutates_CFG=True, analysis_only=False)
class _Inference(NopythonTypeInference):
    _name = "udcp_inference"

    def run_pass(self, state: Any) -> bool:
        inferring: Any = super()
        with cached_calls():
            return bool(inferring.run_pass(state))


@_register(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "udcp_lowering"

    def run_pass(self, state: Any) -> bool:
        lowering: Any = super()
        with cached_calls():
            return bool(lowering.run_pass(state))


@_register(mutates_CFG=True, analysis_only=False)
class _PartInference(_Inference):
    """Lets a part return an array although references are not counted; its callers do not count them either."""

    _name = "udcp_part_inference"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.targetctx = context.subtarget(enable_nrt=True)
        try:
            return super().run_pass(state)
        finally:
            state.targetctx = context


@_register(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    _name = "udcp_part_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library: Any = _Unoptimised
        state.library = library(context.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered = state["cr"]
        # numba registers a function object for the part: one that Python cannot call.
        name = lowered.fndesc.qualname.rpartition(".")[2]
        stand_in = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        context.insert_user_function(stand_in, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=stand_in)
        return True


class KernelCompiler(CompilerBase):
    """numba's compiler with cached look-ups, without the passes that no kernel needs."""

    replaced: ClassVar[dict[Any, Any]] = {NativeLowering: _Lowering, NopythonTypeInference: _Inference}

    def define_pipelines(self) -> list[Any]:
        passes = _default_passes.define_nopython_pipeline(self.state)
        unneeded = (InlineClosureLikes, NopythonRewrites)
        passes.passes = [
            (self.replaced.get(step, step), description) for step, description in passes.passes if step not in unneeded
        ]
        passes.finalize()
        return [passes]


class PartCompiler(KernelCompiler):
    """The compiler of parts: `KernelCompiler` with its own inference and lowering."""

    replaced: ClassVar[dict[Any, Any]] = {NativeLowering: _PartLowering, NopythonTypeInference: _PartInference}
