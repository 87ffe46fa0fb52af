export { jsonBody, readBody } from './json-body.ts'
export { fitting, listPage, pageMembers, readQuery } from './list-page.ts'
export { noStore, setNoStore } from './no-store.ts'
export { orNotFound } from './or-not-found.ts'
