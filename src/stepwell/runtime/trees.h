/* Trees: the structure of Python values; they are compared with values and flatten them to leaves.

   A tree is
     ...                    an array or a number
     None                   None
     3                      in a result: the leaf of this index
     (class, keys, trees)   a dict with these keys; a tuple or list if `keys` is None. If `keys` is a
                            list, of the keys and of them in the order that they have in the dict,
                            it must have that order
     (class, how, more, names, trees)
                            an object with these attributes; if `names` is None, one that
                            `how(value)` flattens to children and data, which must equal `more`; in
                            a result, one that `how(children)` builds
     the class of variables a variable, for its array
   and for a static value, which must be identical: of the same class, with the same bits
     (class, value)         a number, text, a tuple of such; any other value equals only itself
     (object, value)        this very object
     (ndarray, array)       an array of this dtype, shape and content
     (class, names, trees, value)
                            an object with these attributes, which must equal `value` (unless None);
                            the name None stands for the object itself
     (judge, key)           a value for which `judge(value, key)` is true
     True                   any value
     False                  no value: it must be absent */
#ifndef STEPWELL_TREES_H
#define STEPWELL_TREES_H

#include "call.h"

typedef struct {
  PyObject *call;    /* the call that the leaves belong to, an owned reference; NULL for none */
  PyObject **leaves; /* owned references */
  int count;
  int outside; /* the index of the first captured leaf */
} Leaves;

static void forget(Leaves *l) {
  for (int i = 0; i < l->count; i++) Py_CLEAR(l->leaves[i]);
  Py_CLEAR(l->call);
}

static PyTypeObject *variable_type; /* sw.Variable; NULL until it is set */
static Py_ssize_t variable_array;   /* the offset of the array in a variable */

/* Return the array of a variable, a new reference; NULL for other values. */
static inline PyObject *array_in(PyObject *value) {
  return Py_TYPE(value) == variable_type ? *(PyObject **)((char *)value + variable_array) : NULL;
}

static int is_number(PyObject *value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value);
}

/* A number as an array of the dtype that tracing uses; NULL without an error for other values. */
static PyObject *array_of(PyObject *value) {
  PyObject *array;
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    if ((array = PyArray_SimpleNew(0, NULL, NPY_FLOAT64))) *(double *)PyArray_DATA((PyArrayObject *)array) = number;
  } else if (PyBool_Check(value)) {
    if ((array = PyArray_SimpleNew(0, NULL, NPY_BOOL))) *(npy_bool *)PyArray_DATA((PyArrayObject *)array) = value == Py_True;
  } else if (PyLong_CheckExact(value)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return NULL;
    if ((array = PyArray_SimpleNew(0, NULL, NPY_INT64))) *(npy_int64 *)PyArray_DATA((PyArrayObject *)array) = number;
  } else {
    return PyArray_IsScalar(value, Generic) ? PyArray_FromScalar(value, NULL) : NULL;
  }
  return array;
}

/* Whether two arrays have the same dtype, shape and content; `a` is contiguous. */
static int are_same_arrays(PyArrayObject *a, PyArrayObject *b) {
  if (PyArray_NDIM(a) != PyArray_NDIM(b)) return 0;
  if (PyArray_DESCR(a) != PyArray_DESCR(b) && !PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(b))) return 0;
  for (int i = 0; i < PyArray_NDIM(a); i++)
    if (PyArray_DIM(a, i) != PyArray_DIM(b, i)) return 0;
  if (PyArray_IS_C_CONTIGUOUS(b)) return memcmp(PyArray_DATA(a), PyArray_DATA(b), (size_t)PyArray_NBYTES(a)) == 0;
  PyArrayObject *row = PyArray_GETCONTIGUOUS(b);
  if (row == NULL) return -1;
  int same = memcmp(PyArray_DATA(a), PyArray_DATA(row), (size_t)PyArray_NBYTES(a)) == 0;
  Py_DECREF(row);
  return same;
}

/* Whether static values are identical, as 1 == True == 1.0 and 0.0 == -0.0 are not. */
static int is_same(PyObject *a, PyObject *b) {
  if (a == b) return 1;
  if (Py_TYPE(a) != Py_TYPE(b)) return 0;
  if (PyArray_CheckExact(a)) return are_same_arrays((PyArrayObject *)a, (PyArrayObject *)b);
  if (PyFloat_CheckExact(a)) return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double)) == 0;
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
  if (PyComplex_CheckExact(a)) return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval, sizeof(Py_complex)) == 0;
  if (PyTuple_Check(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
      int found = is_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
      if (found != 1) return found;
    }
    return 1;
  }
#define SAME_BITS(kind) \
  if (Py_TYPE(a) == &Py##kind##ArrType_Type) \
    return memcmp(&PyArrayScalar_VAL(a, kind), &PyArrayScalar_VAL(b, kind), sizeof PyArrayScalar_VAL(a, kind)) == 0
  SAME_BITS(Float);
  SAME_BITS(Double);
  SAME_BITS(Half);
  SAME_BITS(CFloat);
  SAME_BITS(CDouble);
#undef SAME_BITS
  return PyArray_IsScalar(a, Integer) ? PyObject_RichCompareBool(a, b, Py_EQ) : 0;
}

/* Whether the keys of a dict, equal to `keys` and as many, are identical, in their classes too. */
static int are_same_keys(PyObject *keys, PyObject *dict) {
  PyObject *key;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, NULL);) {
    int found = 0;
    for (Py_ssize_t i = 0; found == 0 && i < PyTuple_GET_SIZE(keys); i++) found = is_same(PyTuple_GET_ITEM(keys, i), key);
    if (found != 1) return found;
  }
  return 1;
}

/* Whether the keys of a dict are `order`, in that order: 1, 0, or -1 after an error. */
static int is_in_order(PyObject *order, PyObject *dict) {
  PyObject *key;
  Py_ssize_t at = 0, i = 0;
  for (; PyDict_Next(dict, &at, &key, NULL); i++) {
    int found = i < PyTuple_GET_SIZE(order) ? is_same(PyTuple_GET_ITEM(order, i), key) : 0;
    if (found != 1) return found;
  }
  return i == PyTuple_GET_SIZE(order);
}

static int collect(PyObject *tree, PyObject *value, PyObject **next, PyObject **end, PyObject ***after);

/* Whether a static value matches `tree`: (class, value), (judge, key) or that of an object. */
static int is_meant(PyObject *tree, PyObject *value) {
  PyObject *kind = PyTuple_GET_ITEM(tree, 0), *second = PyTuple_GET_ITEM(tree, 1), **after;
  if (!PyType_Check(kind)) {
    PyObject *said = PyObject_CallFunctionObjArgs(kind, value, second, NULL);
    int found = said ? PyObject_IsTrue(said) : -1;
    Py_XDECREF(said);
    return found;
  }
  if (kind == (PyObject *)&PyBaseObject_Type) return second == value;
  if ((PyObject *)Py_TYPE(value) != kind) return 0;
  if (PyTuple_GET_SIZE(tree) == 2) return is_same(second, value);
  if (PyTuple_GET_ITEM(tree, 3) == value && value != Py_None) return 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(second); i++) {
    PyObject *name = PyTuple_GET_ITEM(second, i), *item = value;
    if (name == Py_None)
      Py_INCREF(item);
    else if ((item = PyObject_GetAttr(value, name)) == NULL)
      return PyErr_ExceptionMatches(PyExc_AttributeError) ? PyErr_Clear(), 0 : -1;
    int found = collect(PyTuple_GET_ITEM(PyTuple_GET_ITEM(tree, 2), i), item, NULL, NULL, &after);
    Py_DECREF(item);
    if (found != 1) return found;
  }
  return 1;
}

/* Collect the leaves of an object with attributes, or of one flattened by Python code. */
static int collect_object(PyObject *tree, PyObject *value, PyObject **next, PyObject **end, PyObject ***after) {
  PyObject *how = PyTuple_GET_ITEM(tree, 1), *names = PyTuple_GET_ITEM(tree, 3), *children = PyTuple_GET_ITEM(tree, 4);
  Py_ssize_t n = PyTuple_GET_SIZE(children);
  if ((PyObject *)Py_TYPE(value) != PyTuple_GET_ITEM(tree, 0)) return 0;
  if (names != Py_None) {
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject *item = PyObject_GetAttr(value, PyTuple_GET_ITEM(names, i));
      if (item == NULL) return PyErr_ExceptionMatches(PyExc_AttributeError) ? PyErr_Clear(), 0 : -1;
      int found = collect(PyTuple_GET_ITEM(children, i), item, next, end, &next);
      Py_DECREF(item);
      if (found != 1) return found;
    }
    *after = next;
    return 1;
  }
  PyObject *apart = PyObject_CallOneArg(how, value), *items = NULL;
  int found = apart == NULL ? -1 : PyTuple_Check(apart) && PyTuple_GET_SIZE(apart) == 2;
  if (found == 1) found = PyObject_RichCompareBool(PyTuple_GET_ITEM(tree, 2), PyTuple_GET_ITEM(apart, 1), Py_EQ);
  if (found == 1 && (items = PySequence_Tuple(PyTuple_GET_ITEM(apart, 0))) == NULL) found = -1;
  if (found == 1) found = PyTuple_GET_SIZE(items) == n;
  for (Py_ssize_t i = 0; found == 1 && i < n; i++)
    found = collect(PyTuple_GET_ITEM(children, i), PyTuple_GET_ITEM(items, i), next, end, &next);
  Py_XDECREF(items);
  Py_XDECREF(apart);
  *after = next;
  return found;
}

enum { SMALL_DICT = 8 };

/* Collect the arrays of a small dict whose keys are in another order: 1, or 0 if it does not match.

   Its keys must be the very objects of the tree, and its values arrays. */
static int collect_unordered(PyObject *keys, PyObject *children, PyObject *value, PyObject **next) {
  Py_ssize_t n = PyTuple_GET_SIZE(children), i = 0;
  PyObject *key, *item;
  for (i = 0; i < n; i++)
    if (next[i] != NULL || PyTuple_GET_ITEM(children, i) != Py_Ellipsis) return 0;
  Py_ssize_t at = 0, left = n;
  for (; left > 0 && PyDict_Next(value, &at, &key, &item); left--) {
    for (i = 0; i < n && PyTuple_GET_ITEM(keys, i) != key;) i++;
    if (i == n || !PyArray_CheckExact(item)) break;
    Py_INCREF(next[i] = item);
  }
  if (left == 0) return 1;
  for (i = 0; i < n; i++) Py_CLEAR(next[i]);
  return 0;
}

/* Collect the leaves of `value` at `*next`: 1 if it matches `tree`, 0 if not, -1 after an error. */
static int collect(PyObject *tree, PyObject *value, PyObject **next, PyObject **end, PyObject ***after) {
  *after = next;
  if (tree == Py_Ellipsis || tree == Py_NotImplemented) { /* array, Python number */
    if (next == end || *next != NULL || is_number(value) != (tree == Py_NotImplemented)) return 0;
    if (PyArray_CheckExact(value) || is_resident(value))
      Py_INCREF(*next = value);
    else if ((*next = array_of(value)) == NULL)
      return PyErr_Occurred() ? -1 : 0;
    *after = next + 1;
    return 1;
  }
  if (tree == Py_None) return value == Py_None;
  if (PyBool_Check(tree)) return tree == Py_True;
  if (PyType_Check(tree)) {
    PyObject *array = array_in(value);
    if (array == NULL || next == end || *next != NULL) return 0;
    Py_INCREF(*next = array);
    *after = next + 1;
    return 1;
  }
  if (PyTuple_GET_SIZE(tree) == 5) return collect_object(tree, value, next, end, after);
  if (PyTuple_GET_SIZE(tree) != 3) return is_meant(tree, value);
  PyObject *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  Py_ssize_t n = PyTuple_GET_SIZE(children);
  if ((PyObject *)Py_TYPE(value) != PyTuple_GET_ITEM(tree, 0)) return 0;
  if (PyList_CheckExact(keys)) {
    int ordered = is_in_order(PyList_GET_ITEM(keys, 1), value);
    if (ordered != 1) return ordered;
    keys = PyList_GET_ITEM(keys, 0);
  }
  if ((keys != Py_None ? PyDict_GET_SIZE(value) : Py_SIZE(value)) != n) return 0;
  int plain = 1; /* whether all keys are exact str, as is usual: then equal keys are identical */
  Py_ssize_t at = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *child = PyTuple_GET_ITEM(children, i), *item, *key, *met;
    if (keys != Py_None) {
      if (!PyDict_Next(value, &at, &met, &item)) return 0;
      if ((key = PyTuple_GET_ITEM(keys, i)) != met) {
        if (i == 0 && n <= SMALL_DICT && end - next >= n && collect_unordered(keys, children, value, next))
          return *after = next + n, 1;
        /* the look-up may run code that changes the dict */
        plain &= PyUnicode_CheckExact(key) & PyUnicode_CheckExact(met);
        if ((item = PyDict_GetItemWithError(value, key)) == NULL)
          return PyErr_Occurred() ? -1 : 0;
      }
    } else if (PyTuple_Check(value)) {
      item = PyTuple_GET_ITEM(value, i);
    } else {
      if (i >= PyList_GET_SIZE(value)) return 0;
      item = PyList_GET_ITEM(value, i);
    }
    if (child == Py_Ellipsis && PyArray_CheckExact(item)) { /* the usual case */
      if (next == end || *next != NULL) return 0;
      Py_INCREF(*next++ = item);
      continue;
    }
    if (child == (PyObject *)variable_type) {
      PyObject *array = array_in(item);
      if (array == NULL || next == end || *next != NULL) return 0;
      Py_INCREF(*next++ = array);
      continue;
    }
    Py_INCREF(item);
    int found = collect(child, item, next, end, &next);
    Py_DECREF(item);
    if (found != 1) return found;
  }
  *after = next;
  return plain ? 1 : are_same_keys(keys, value);
}

static int is_tree(PyObject *tree);

/* Whether `tree` is (class, names, trees, value). */
static int is_object(PyObject *tree) {
  PyObject *names = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  if (!PyType_Check(PyTuple_GET_ITEM(tree, 0)) || !PyTuple_Check(names) || !PyTuple_Check(children)) return 0;
  if (PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(children)) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
    if (PyTuple_GET_ITEM(children, i) == Py_Ellipsis || !is_tree(PyTuple_GET_ITEM(children, i))) return 0;
  return 1;
}

static int is_tree_of(PyObject *tree, int results);

/* Whether `tree` is (class, how, more, names, trees). */
static int is_of_object(PyObject *tree, int results) {
  PyObject *how = PyTuple_GET_ITEM(tree, 1), *names = PyTuple_GET_ITEM(tree, 3), *children = PyTuple_GET_ITEM(tree, 4);
  if (!PyType_Check(PyTuple_GET_ITEM(tree, 0)) || !PyTuple_Check(children)) return 0;
  if (names == Py_None ? !PyCallable_Check(how) : !PyTuple_Check(names) || PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(children)) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++)
    if ((names != Py_None && !PyUnicode_Check(PyTuple_GET_ITEM(names, i))) || !is_tree_of(PyTuple_GET_ITEM(children, i), results)) return 0;
  return 1;
}

/* Whether `tree` is valid for a result built from `results` arrays; 0 for a tree of arguments. */
static int is_tree_of(PyObject *tree, int results) {
  if (tree == Py_Ellipsis || tree == Py_NotImplemented || tree == Py_None || PyBool_Check(tree)) return 1;
  if (PyLong_CheckExact(tree)) return PyLong_AsLong(tree) >= 0 && PyLong_AsLong(tree) < results;
  if (PyType_Check(tree)) return (PyTypeObject *)tree == variable_type;
  if (!PyTuple_Check(tree)) return 0;
  if (PyTuple_GET_SIZE(tree) == 5) return is_of_object(tree, results);
  if (PyTuple_GET_SIZE(tree) == 2) return PyType_Check(PyTuple_GET_ITEM(tree, 0)) || PyCallable_Check(PyTuple_GET_ITEM(tree, 0));
  if (PyTuple_GET_SIZE(tree) == 4) return is_object(tree);
  if (PyTuple_GET_SIZE(tree) != 3 || !PyType_Check(PyTuple_GET_ITEM(tree, 0))) return 0;
  PyTypeObject *kind = (PyTypeObject *)PyTuple_GET_ITEM(tree, 0);
  PyObject *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  if (!PyTuple_Check(children)) return 0;
  if (PyList_CheckExact(keys)) {
    if (PyList_GET_SIZE(keys) != 2 || !PyTuple_Check(PyList_GET_ITEM(keys, 1))) return 0;
    keys = PyList_GET_ITEM(keys, 0);
  }
  if (kind == &PyDict_Type ? !PyTuple_Check(keys) || PyTuple_GET_SIZE(keys) != PyTuple_GET_SIZE(children)
                           : keys != Py_None || (kind != &PyList_Type && !PyType_IsSubtype(kind, &PyTuple_Type)))
    return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++)
    if (!is_tree_of(PyTuple_GET_ITEM(children, i), results)) return 0;
  return 1;
}

static int is_tree(PyObject *tree) { return is_tree_of(tree, 0); }

#endif
