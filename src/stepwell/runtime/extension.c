/* The C extension of the runtime: Program (call.h), Dispatcher (dispatch.h), fingerprint. */
#include "dispatch.h"
#include "fingerprint.h"


/* ---- module -------------------------------------------------------------------------------- */

static PyObject *set_threads(PyObject *module, PyObject *count) {
  (void)module;
  long n = PyLong_AsLong(count);
  if (n == -1 && PyErr_Occurred()) return NULL;
  sw_shared.threads = n < 1 ? 1 : n > SW_MAX_THREADS ? SW_MAX_THREADS : (int32_t)n;
  Py_RETURN_NONE;
}

static PyObject *set_variable(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *kind, *name;
  if (!PyArg_ParseTuple(args, "O!U", &PyType_Type, &kind, &name)) return NULL;
  Py_ssize_t at = slot_at(kind, name);
  if (at < 0) return NULL;
  variable_array = at;
  Py_INCREF(kind);
  Py_XSETREF(variable_type, (PyTypeObject *)kind);
  Py_RETURN_NONE;
}

static PyObject *set_resident(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *kind, *dtype, *shape;
  if (!PyArg_ParseTuple(args, "O!UU", &PyType_Type, &kind, &dtype, &shape)) return NULL;
  if ((resident_dtype_at = slot_at(kind, dtype)) < 0 || (resident_shape_at = slot_at(kind, shape)) < 0) return NULL;
  Py_INCREF(kind);
  Py_XSETREF(resident_type, (PyTypeObject *)kind);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_variable", set_variable, METH_VARARGS, "set_variable(class, name): what variables are, and the slot of their array."},
    {"set_resident", set_resident, METH_VARARGS, "set_resident(class, dtype, shape): what arrays on devices are, and two slots."},
    {"set_threads", set_threads, METH_O, "set_threads(n): how many threads programs may use."},
    {"fingerprint", fingerprint, METH_VARARGS, "fingerprint(buffer, key): sums of its bytes, block by block."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "stepwell_extension", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_stepwell_extension(void) {
  import_array();
  sw_memory_init();
  if ((large_handler = PyCapsule_New(&large_memory, "mem_handler", NULL)) == NULL) return NULL;
  if (PyType_Ready(&ProgramType) < 0 || PyType_Ready(&DispatcherType) < 0 || PyType_Ready(&WatchType) < 0) return NULL;
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL || PyModule_AddObjectRef(module, "Program", (PyObject *)&ProgramType) < 0 ||
      PyModule_AddObjectRef(module, "Dispatcher", (PyObject *)&DispatcherType) < 0 ||
      PyModule_AddObjectRef(module, "Watch", (PyObject *)&WatchType) < 0)
    Py_CLEAR(module);
  return module;
}
