export { checkedFunction } from './checked-function.ts'
export { notify } from './notify.ts'
export { dropFailure, errorOf, settled } from './own-failures.ts'
