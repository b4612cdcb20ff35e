/* What figures are held against: bare reading of memory, and a call from Python that does nothing.

   read(a, b, c, n, threads): read three arrays of n floats; bare(...): return the first argument. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>

enum { LANES = 16, MOST = 256 };
typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct {
  const float *at[3];
  int64_t n;
  vector sum;
  pthread_t thread;
} Part;

static void *read_part(void *of) {
  Part *part = of;
  vector sums[4] = {0};
  const vector *a = (const vector *)part->at[0], *b = (const vector *)part->at[1], *c = (const vector *)part->at[2];
  for (int64_t i = 0; i + 4 <= part->n / LANES; i += 4)
    for (int k = 0; k < 4; k++) sums[k] += (a[i + k] + b[i + k]) + c[i + k];
  part->sum = sums[0] + sums[1] + sums[2] + sums[3];
  return NULL;
}

static PyObject *read_three(PyObject *module, PyObject *args) {
  static Part parts[MOST];
  Py_ssize_t a, b, c;
  long long n;
  int threads;
  if (!PyArg_ParseTuple(args, "nnnLi", &a, &b, &c, &n, &threads)) return NULL;
  threads = threads < 1 ? 1 : threads > MOST ? MOST : threads;
  Py_BEGIN_ALLOW_THREADS
  int64_t begin = 0;
  for (int t = 0; t < threads; t++) {
    int64_t end = n * (t + 1) / threads / LANES * LANES;
    parts[t] = (Part){{(float *)a + begin, (float *)b + begin, (float *)c + begin}, end - begin};
    begin = end;
    if (t > 0) pthread_create(&parts[t].thread, NULL, read_part, &parts[t]);
  }
  read_part(&parts[0]);
  for (int t = 1; t < threads; t++) pthread_join(parts[t].thread, NULL);
  Py_END_ALLOW_THREADS
  double sum = 0;
  for (int t = 0; t < threads; t++)
    for (int k = 0; k < LANES; k++) sum += parts[t].sum[k];
  return PyFloat_FromDouble(sum);
}

static PyObject *bare(PyObject *module, PyObject *const *args, Py_ssize_t n) {
  if (n < 1) Py_RETURN_NONE;
  Py_INCREF(args[0]);
  return args[0];
}

static PyMethodDef functions[] = {{"read", read_three, METH_VARARGS, NULL},
                                  {"bare", (PyCFunction)(void (*)(void))bare, METH_FASTCALL, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bare", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_bare(void) { return PyModule_Create(&definition); }
