export { listPage, pageMembers, readQuery } from './list-page.ts'
