export { clientAddress } from './client-address.ts'
export { networkOf } from './network.ts'
