/* Device arrays as the dispatcher sees them: dtype and shape, no data.

   They are objects of a Python class (device_arrays.py) with slots for both. */
#ifndef STEPWELL_RESIDENT_H
#define STEPWELL_RESIDENT_H

static PyTypeObject *resident_type; /* sw.DeviceArray; NULL until it is set */
static Py_ssize_t resident_dtype_at, resident_shape_at;

static inline PyArray_Descr *resident_dtype(PyObject *o) {
  return *(PyArray_Descr **)((char *)o + resident_dtype_at);
}

/* Whether an object is a device array; Python code may have changed its slots: they are checked. */
static inline int is_resident(PyObject *o) {
  if (Py_TYPE(o) != resident_type) return 0;
  PyObject *shape = *(PyObject **)((char *)o + resident_shape_at), *dtype = (PyObject *)resident_dtype(o);
  return shape && dtype && PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) <= NPY_MAXDIMS && PyArray_DescrCheck(dtype);
}

/* Store the sizes of an array; return its rank. */
static inline int resident_sizes(PyObject *o, npy_intp *sizes) {
  PyObject *shape = *(PyObject **)((char *)o + resident_shape_at);
  int rank = (int)PyTuple_GET_SIZE(shape);
  for (int i = 0; i < rank; i++) sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
  if (PyErr_Occurred()) PyErr_Clear(), rank = -1;
  return rank;
}

/* Return the offset of a slot in objects of a class; -1 after an error. */
static Py_ssize_t slot_at(PyObject *kind, PyObject *name) {
  PyObject *slot = PyObject_GetAttr(kind, name);
  if (slot == NULL) return -1;
  Py_ssize_t at = -1;
  if (Py_IS_TYPE(slot, &PyMemberDescr_Type))
    at = ((PyMemberDescrObject *)slot)->d_member->offset;
  else
    PyErr_Format(PyExc_TypeError, "%R has no slot %R", kind, name);
  Py_DECREF(slot);
  return at;
}

#endif
