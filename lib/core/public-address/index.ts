export { isPrivateHost, lookupAny, lookupPublic, PrivateAddress } from './public-address.ts'
