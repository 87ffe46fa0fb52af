export { checkedFunction } from './checked-function.ts'
export { dropFailure, errorOf, settled } from './own-failures.ts'
export { tellListener } from './tell-listener.ts'
